/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ptrace/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	GET_FILTER = 0x420c, /* PTRACE_SECCOMP_GET_FILTER */
	FILTERS_MAX = 1000,
	A_DESCRIPTOR = 1000, /* which one it will be is not known yet */
};

#ifdef __x86_64__
static const uint32_t audit_arch = AUDIT_ARCH_X86_64;
#else
static const uint32_t audit_arch = AUDIT_ARCH_AARCH64;
#endif

/* What loading needs; those that may fail have something else in their place. */
static const struct {
	const char *name;
	int number;
	bool may_fail;
	uint64_t args[6];
} calls[] = {
	{"mmap", SYS_mmap, false, {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS}},
	{"mmap", SYS_mmap, false, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS}},
	{"mmap", SYS_mmap, false, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE}},
	{"mmap", SYS_mmap, false, {0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK}},
	{"mprotect", SYS_mprotect, true, {0, 4096, PROT_READ | PROT_EXEC}},
	{"mprotect", SYS_mprotect, false, {0, 4096, PROT_READ | PROT_WRITE}},
	{"munmap", SYS_munmap, false, {}},
	{"ppoll", SYS_ppoll, false, {}},
	{"rt_sigreturn", SYS_rt_sigreturn, false, {}},
	{"rt_sigprocmask", SYS_rt_sigprocmask, false, {}},
	{"rt_sigaction", SYS_rt_sigaction, false, {}},
	{"clone", SYS_clone, false, {0x3d0f00}},
	{"nanosleep", SYS_nanosleep, false, {}},
	{"futex", SYS_futex, false, {}},
	{"openat", SYS_openat, false, {}},
	{"read", SYS_read, false, {}},
	{"close", SYS_close, false, {}},
	{"exit", SYS_exit, false, {}},
	{"gettid", SYS_gettid, true, {}},
	{"prctl", SYS_prctl, true, {}},
	{"clone3", SYS_clone3, true, {}},
	{"madvise", SYS_madvise, true, {}},
	{"set_robust_list", SYS_set_robust_list, true, {}},
	{"rseq", SYS_rseq, true, {}},
	{"memfd_create", SYS_memfd_create, true, {}},
	{"write", SYS_write, true, {A_DESCRIPTOR}},
};

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t value = 0;

	if (offset <= sizeof(*data) - sizeof(value))
		memcpy(&value, (const char *)data + offset, sizeof(value));
	return value;
}

static uint32_t calculate(uint16_t operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return a / b; /* never 0 */
	case BPF_OR:
		return a | b;
	case BPF_AND:
		return a & b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	case BPF_XOR:
		return a ^ b;
	case BPF_NEG:
		return -a;
	}
	return 0;
}

static bool holds(uint16_t operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JSET:
		return a & b;
	}
	return false;
}

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
	size_t next;
};

/* One instruction that is neither a jump nor the end. */
static void run_one(struct machine *m, const struct sock_filter *i, const struct seccomp_data *data)
{
	uint32_t operand = BPF_SRC(i->code) == BPF_X ? m->x : i->k;
	bool to_x = BPF_CLASS(i->code) == BPF_LDX;
	uint32_t value = 0;

	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
	case BPF_LDX:
		if (BPF_MODE(i->code) == BPF_ABS)
			value = load(data, i->k);
		else if (BPF_MODE(i->code) == BPF_IMM)
			value = i->k;
		else if (BPF_MODE(i->code) == BPF_MEM)
			value = m->memory[i->k % BPF_MEMWORDS];
		else if (BPF_MODE(i->code) == BPF_LEN)
			value = sizeof(*data);
		*(to_x ? &m->x : &m->a) = value;
		break;
	case BPF_ST:
		m->memory[i->k % BPF_MEMWORDS] = m->a;
		break;
	case BPF_STX:
		m->memory[i->k % BPF_MEMWORDS] = m->x;
		break;
	case BPF_ALU:
		m->a = calculate(BPF_OP(i->code), m->a, operand);
		break;
	case BPF_MISC:
		if (BPF_MISCOP(i->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
		break;
	}
}

uint32_t prb_seccomp_run(const struct sock_filter *code, size_t count,
			 const struct seccomp_data *data)
{
	struct machine m = {};

	while (m.next < count) {
		const struct sock_filter *i = &code[m.next++];
		uint32_t operand = BPF_SRC(i->code) == BPF_X ? m.x : i->k;

		if (BPF_CLASS(i->code) == BPF_RET)
			return BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
		if (BPF_CLASS(i->code) == BPF_ALU && BPF_OP(i->code) == BPF_DIV && !operand)
			return SECCOMP_RET_KILL_THREAD;
		if (BPF_CLASS(i->code) != BPF_JMP)
			run_one(&m, i, data);
		else if (BPF_OP(i->code) == BPF_JA)
			m.next += i->k;
		else
			m.next += holds(BPF_OP(i->code), m.a, operand) ? i->jt : i->jf;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static struct prb_error *check_filter(const struct sock_filter *code, size_t count)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(calls); i++) {
		struct seccomp_data data = {.nr = calls[i].number, .arch = audit_arch};
		uint32_t action;

		for (size_t n = 0; n < PRB_ARRAY_SIZE(data.args); n++)
			data.args[n] = calls[i].args[n];
		action = prb_seccomp_run(code, count, &data) & SECCOMP_RET_ACTION_FULL;
		if (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG ||
		    (calls[i].may_fail && action == SECCOMP_RET_ERRNO))
			continue;
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "its seccomp filter does not allow %s(), which loading "
					 "needs",
					 calls[i].name),
			"start it without this filter (docker run --security-opt "
			"seccomp=unconfined)");
	}
	return NULL;
}

struct prb_error *prb_seccomp_check(pid_t tid)
{
	static struct sock_filter code[BPF_MAXINSNS];

	for (long n = 0; n < FILTERS_MAX; n++) {
		long count = ptrace((enum __ptrace_request)GET_FILTER, tid, n, NULL);

		if (count > 0 && count <= BPF_MAXINSNS)
			count = ptrace((enum __ptrace_request)GET_FILTER, tid, n, code);
		if (count < 0 && errno == ENOENT)
			return NULL;
		if (count <= 0 || count > BPF_MAXINSNS)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_PERMISSION,
						 "its seccomp filter cannot be read: %s",
						 strerror(errno)),
				"only root (CAP_SYS_ADMIN) can find out whether loading is allowed "
				"there: run probing as root on the host");
		PRB_TRY(check_filter(code, (size_t)count));
	}
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "it has over %d seccomp filters",
				FILTERS_MAX);
}

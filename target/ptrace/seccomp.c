/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/ptrace/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	GET_FILTER = 0x420c, /* PTRACE_SECCOMP_GET_FILTER */
	FILTERS_MAX = 1000,
};

#ifdef __x86_64__
static const uint32_t audit_arch = AUDIT_ARCH_X86_64;
#else
static const uint32_t audit_arch = AUDIT_ARCH_AARCH64;
#endif

static const struct {
	const char *name;
	int number;
	unsigned maker;
	bool may_fail;
	uint64_t args[6];
} calls[] = {
#define CALL(name, maker, may_fail, decides, ...) \
	{#name, SYS_##name, PRB_CALL_##maker, may_fail, {__VA_ARGS__}},
	PRB_CALLS(CALL)};

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

static bool is_allowed(uint32_t action)
{
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

/* What a filter answers to a call, without the details that a program gets. */
static uint32_t answer(const struct sock_filter *code, size_t count, int number,
		       const uint64_t args[6])
{
	struct seccomp_data data = {.nr = number, .arch = audit_arch};

	for (size_t n = 0; n < PRB_ARRAY_SIZE(data.args); n++)
		data.args[n] = args[n];
	return prb_seccomp_run(code, count, &data) & SECCOMP_RET_ACTION_FULL;
}

/* The same where an int may be extended to a register in either way: the worse of both. */
static uint32_t answer_ints(const struct sock_filter *code, size_t count, int number,
			    const uint64_t args[6])
{
	uint64_t other[6];
	uint32_t action;

	for (size_t n = 0; n < PRB_ARRAY_SIZE(other); n++)
		other[n] = (int64_t)args[n] < 0 ? (uint32_t)args[n]
			   : args[n] >> 31 == 1 ? (uint64_t)(int32_t)args[n]
						: args[n];
	action = answer(code, count, number, args);
	return is_allowed(action) ? answer(code, count, number, other) : action;
}

static const char *what_needs(unsigned maker)
{
	if (maker & PRB_CALL_CRASHES)
		return "which a crash record needs";
	return maker & PRB_CALL_SERVES ? "which the agent needs" : "which loading needs";
}

static struct prb_error *check_filter(const struct sock_filter *code, size_t count, unsigned makers)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(calls); i++) {
		if (!(calls[i].maker & makers))
			continue;
		uint32_t action = answer_ints(code, count, calls[i].number, calls[i].args);

		if (is_allowed(action) || (calls[i].may_fail && action == SECCOMP_RET_ERRNO))
			continue;
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "its seccomp filter does not allow %s(), %s",
						       calls[i].name, what_needs(calls[i].maker)),
				      "start it without this filter (docker run --security-opt "
				      "seccomp=unconfined)");
	}
	return NULL;
}

/* One filter of the stopped thread: how many instructions *ret gets, < 0 with errno: none. */
static long get_filter(pid_t tid, long n, struct sock_filter **ret)
{
	long count = ptrace((enum __ptrace_request)GET_FILTER, tid, n, NULL);

	*ret = NULL;
	if (count < 0)
		return count;
	*ret = calloc((size_t)count + 1, sizeof(**ret));
	if (*ret)
		return ptrace((enum __ptrace_request)GET_FILTER, tid, n, *ret);
	errno = ENOMEM;
	return -1;
}

struct prb_error *prb_seccomp_check(pid_t tid, unsigned makers)
{
	for (long n = 0; n < FILTERS_MAX; n++) {
		prb_auto_free struct sock_filter *code = NULL;
		long count = get_filter(tid, n, &code);

		if (count < 0 && errno == ENOENT)
			return NULL;
		if (count < 0)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_PERMISSION,
						 "its seccomp filter cannot be read: %s",
						 strerror(errno)),
				"only root (CAP_SYS_ADMIN) can find out whether loading is allowed "
				"there: run probing as root on the host");
		PRB_TRY(check_filter(code, (size_t)count, makers));
	}
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "it has over %d seccomp filters",
				FILTERS_MAX);
}

bool prb_seccomp_forbids(pid_t tid, int number)
{
	const uint64_t args[6] = {};

	for (long n = 0; n < FILTERS_MAX; n++) {
		prb_auto_free struct sock_filter *code = NULL;
		long count = get_filter(tid, n, &code);

		if (count < 0)
			return false;
		if (!is_allowed(answer(code, (size_t)count, number, args)))
			return true;
	}
	return false;
}

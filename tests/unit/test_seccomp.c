/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Filters of system calls are run as the kernel runs them, which is asked itself. */
#include <errno.h>
#include <linux/audit.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "target/ptrace/seccomp.h"

enum {
	CALL = SYS_getpgid, /* the only one that the filters here judge */
	PROGRAMS = 300,
	CALLS = 8, /* of each program */
	OPERATIONS = 30,
	LENGTH_MAX = OPERATIONS + BPF_MEMWORDS + 8,
	CODE_MASK = 0xfff,
	REFUSED = -1, /* by the kernel, as a filter */
};

#ifdef __x86_64__
static const uint32_t architecture = AUDIT_ARCH_X86_64;
#else
static const uint32_t architecture = AUDIT_ARCH_AARCH64;
#endif

struct program {
	struct sock_filter code[LENGTH_MAX];
	unsigned short length;
};

static void add(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	assert_true(p->length < LENGTH_MAX);
	p->code[p->length++] = (struct sock_filter){code, jt, jf, k};
}

static uint32_t argument_offset(unsigned i)
{
	return (uint32_t)(offsetof(struct seccomp_data, args) + 4 * (i % 12));
}

/* One operation that the kernel accepts; @left: how many follow it, which a jump may skip. */
static void add_random(struct program *p, unsigned *seed, unsigned left)
{
	static const uint16_t operations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_OR, BPF_AND, BPF_XOR};
	static const uint16_t shifts[] = {BPF_LSH, BPF_RSH};
	static const uint16_t jumps[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
	uint32_t k = (uint32_t)rand_r(seed) ^ (uint32_t)rand_r(seed) << 16;
	uint16_t source = rand_r(seed) % 2 ? BPF_X : BPF_K;
	unsigned pick = (unsigned)rand_r(seed);

	switch (rand_r(seed) % 11) {
	case 0:
		add(p, BPF_LD | BPF_W | BPF_ABS, argument_offset(pick), 0, 0);
		break;
	case 1:
		add(p, (pick & 1 ? BPF_LD : BPF_LDX) | BPF_IMM, k, 0, 0);
		break;
	case 2:
		add(p, BPF_MISC | (pick & 1 ? BPF_TAX : BPF_TXA), 0, 0, 0);
		break;
	case 3:
		add(p, BPF_ST, pick % BPF_MEMWORDS, 0, 0);
		break;
	case 9:
		add(p, (pick & 1 ? BPF_LD : BPF_LDX) | BPF_MEM, pick / 2 % BPF_MEMWORDS, 0, 0);
		break;
	case 4:
		add(p, BPF_ALU | shifts[pick % 2] | BPF_K, k % 32, 0, 0);
		break;
	case 5:
		add(p, BPF_ALU | BPF_NEG, 0, 0, 0);
		break;
	case 6:
		add(p, BPF_JMP | jumps[pick % 4] | source, k,
		    left ? (uint8_t)(pick / 4 % PRB_MIN(left, 3)) : 0, 0);
		break;
	case 7:
		add(p, BPF_LD | BPF_W | BPF_LEN, 0, 0, 0);
		break;
	case 8: /* a constant 0 is refused, any other ends the filter */
		add(p, BPF_ALU | BPF_DIV | BPF_K, k | 1, 0, 0);
		break;
	default:
		add(p, BPF_ALU | operations[pick % PRB_ARRAY_SIZE(operations)] | source, k, 0, 0);
	}
}

/* Lets all calls pass but one, which gets an error number that the operations work out. */
static void make(struct program *p, unsigned *seed)
{
	p->length = 0;
	add(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	add(p, BPF_JMP | BPF_JEQ | BPF_K, CALL, 1, 0);
	add(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	for (uint32_t i = 0; i < BPF_MEMWORDS; i++) /* what was not set may not be read */
		add(p, BPF_ST, i, 0, 0);
	for (unsigned i = OPERATIONS; i-- > 0;)
		add_random(p, seed, i);
	add(p, BPF_ALU | BPF_AND | BPF_K, CODE_MASK, 0, 0);
	add(p, BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO, 0, 0);
	add(p, BPF_RET | BPF_A, 0, 0, 0);
}

struct question {
	uint64_t arguments[6];
	int answer; /* the error number that the call failed with */
};

static void child(const struct program *p, struct question *questions)
{
	const struct sock_fprog filter = {p->length, (struct sock_filter *)p->code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		questions[0].answer = REFUSED;
		_exit(0);
	}
	for (size_t i = 0; i < CALLS; i++) {
		const uint64_t *a = questions[i].arguments;

		errno = 0;
		syscall(CALL, a[0], a[1], a[2], a[3], a[4], a[5]);
		questions[i].answer = errno;
	}
	_exit(0);
}

static void test_as_the_kernel(void **state)
{
	struct question *questions =
		mmap(NULL, sizeof(struct question) * CALLS, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned seed = 1, compared = 0;

	(void)state;
	assert_true(questions != MAP_FAILED);
	for (int n = 0; n < PROGRAMS; n++) {
		struct program p;
		int status;

		make(&p, &seed);
		for (int i = 0; i < CALLS * 6; i++)
			questions[i / 6].arguments[i % 6] =
				(uint64_t)rand_r(&seed) << 33 | (uint64_t)rand_r(&seed);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			child(&p, questions);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_not_equal(questions[0].answer, REFUSED);
		for (int i = 0; i < CALLS; i++) {
			struct seccomp_data data = {.nr = CALL, .arch = architecture};

			memcpy(data.args, questions[i].arguments, sizeof(data.args));
			uint32_t ours = prb_seccomp_run(p.code, p.length, &data);
			assert_int_equal(ours & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
			/* The kernel knows error numbers up to 4095. */
			assert_int_equal(ours & CODE_MASK, questions[i].answer);
			compared++;
		}
	}
	assert_int_equal(compared, PROGRAMS * CALLS);
	munmap(questions, sizeof(struct question) * CALLS);
}

/* The filter ends there, and so does who asked. */
static void test_division_by_zero(void **state)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_LDX | BPF_IMM, 0),
		BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct program p = {.length = PRB_ARRAY_SIZE(code)};
	const struct seccomp_data data = {.nr = CALL, .arch = architecture};
	struct question questions[CALLS] = {};
	int status;

	(void)state;
	memcpy(p.code, code, sizeof(code));
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		child(&p, questions);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	assert_int_equal(prb_seccomp_run(p.code, p.length, &data), SECCOMP_RET_KILL_THREAD);
}

static uint32_t run(const struct sock_filter *code, size_t count)
{
	const struct seccomp_data data = {.nr = CALL, .arch = architecture};

	return prb_seccomp_run(code, count, &data);
}

static void test_hostile(void **state)
{
	const struct sock_filter beyond[] = {BPF_JUMP(BPF_JMP | BPF_JA, 0xffffffff, 0, 0)};
	const struct sock_filter no_end[] = {BPF_STMT(BPF_LD | BPF_IMM, 1)};
	const struct sock_filter memory[] = {BPF_STMT(BPF_ST, 0xfffffff0),
					     BPF_STMT(BPF_LD | BPF_MEM, 0xffffffff),
					     BPF_STMT(BPF_RET | BPF_A, 0)};
	const struct sock_filter load[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0xfffffffc),
					   BPF_STMT(BPF_RET | BPF_A, 0)};
	const struct sock_filter divide[] = {BPF_STMT(BPF_LD | BPF_IMM, 7),
					     BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
					     BPF_STMT(BPF_RET | BPF_A, 0)};

	(void)state;
	assert_int_equal(run(NULL, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(run(beyond, 1), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(run(no_end, 1), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(run(memory, 3), 0);
	assert_int_equal(run(load, 2), 0);
	assert_int_equal(run(divide, 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_kernel),
		cmocka_unit_test(test_division_by_zero),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests_name("seccomp", tests, NULL, NULL);
}

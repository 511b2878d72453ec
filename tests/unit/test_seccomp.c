/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Our evaluation of seccomp filters is compared with the kernel's; and for sets of argument values
 * no result may be missed.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "target/ptrace/seccomp.h"
#include "target/ptrace/seccomp_filter.h"

enum {
	CALL = SYS_getpgid, /* the only call that the filters here judge */
	PROGRAMS = 300,
	CALLS = 8, /* of each program */
	OPERATIONS = 30,
	LENGTH_MAX = OPERATIONS + BPF_MEMWORDS + 8,
	CODE_MASK = 0xfff,
	REFUSED = -1, /* by the kernel, as a filter */
};

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

/*
 * Adds an operation that the kernel accepts; @left: number of following ones, which a jump may
 * skip.
 */
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

/* Allows all calls but one, which fails with a computed error number. */
static void make(struct program *p, unsigned *seed)
{
	p->length = 0;
	add(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	add(p, BPF_JMP | BPF_JEQ | BPF_K, CALL, 1, 0);
	add(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	for (uint32_t i = 0; i < BPF_MEMWORDS; i++) /* unset words may not be read */
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

/* Our result: the number of outcomes, and whether one is, or may be, the answer. */
struct found {
	uint32_t answer; /* with the bits of CODE_MASK */
	unsigned results, fitting;
	uint32_t last;
};

static bool find(void *context, uint32_t low, uint32_t high)
{
	struct found *f = context;

	f->results++;
	f->last = low;
	f->fitting += (f->answer >= low && f->answer <= high);
	return true;
}

static void evaluate(const struct sock_filter *code, size_t count,
		     const struct prb_seccomp_call *call, struct found *f)
{
	bool all = false;

	assert_null(prb_seccomp_results(code, count, call, find, f, &all));
	assert_true(all);
}

/* The kernel knows error numbers up to 4095. */
static void compare(const struct program *p, const struct question *question, unsigned *seed)
{
	struct prb_seccomp_call call = {.number = CALL};
	struct found f = {.answer = SECCOMP_RET_ERRNO | (uint32_t)question->answer};

	for (int i = 0; i < 6; i++)
		call.args[i].low = call.args[i].high = question->arguments[i];
	evaluate(p->code, p->length, &call, &f);
	assert_int_equal(f.results, 1);
	assert_int_equal(f.fitting, 1);
	/* With sets of values the result includes the same answer. */
	for (int i = 0; i < 6; i++) {
		uint64_t below = (uint64_t)rand_r(seed) << rand_r(seed) % 33;
		uint64_t above = (uint64_t)rand_r(seed) << rand_r(seed) % 33;

		call.args[i].low -= PRB_MIN(below, call.args[i].low);
		call.args[i].high += PRB_MIN(above, UINT64_MAX - call.args[i].high);
		f.results = f.fitting = 0;
		evaluate(p->code, p->length, &call, &f);
		assert_true(f.fitting >= 1);
	}
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
			compare(&p, &questions[i], &seed);
			compared++;
		}
	}
	assert_int_equal(compared, PROGRAMS * CALLS);
	munmap(questions, sizeof(struct question) * CALLS);
}

/* The filter ends there, which kills the caller. */
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
	const struct prb_seccomp_call call = {.number = CALL};
	struct found f = {};
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
	evaluate(p.code, p.length, &call, &f);
	assert_int_equal(f.results, 1);
	assert_int_equal(f.last, SECCOMP_RET_KILL_THREAD);
}

static uint32_t run(const struct sock_filter *code, size_t count)
{
	const struct prb_seccomp_call call = {.number = CALL};
	struct found f = {};

	evaluate(code, count, &call, &f);
	assert_int_equal(f.results, 1);
	return f.last;
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

enum { LOW = 16, HIGH = 20, STEP = 8 }; /* offsets of the words of the first argument */

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define IF(comparison, k, yes, no) BPF_JUMP(BPF_JMP | (comparison) | BPF_K, k, yes, no)
#define RETURN(result) BPF_STMT(BPF_RET | BPF_K, result)
/* All calls but one are allowed; the rest of the filter is about that one. */
#define ONLY(number) LOAD(0), IF(BPF_JEQ, number, 1, 0), RETURN(SECCOMP_RET_ALLOW)
#define KILL RETURN(SECCOMP_RET_KILL_PROCESS)
#define ALLOW RETURN(SECCOMP_RET_ALLOW)
/* libseccomp's masked comparison: both words, the high one with a mask of 0. */
#define MASKED(argument, mask, value, yes, no)                                  \
	LOAD(HIGH + STEP * (argument)), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0), \
		IF(BPF_JEQ, 0, 0, (no) + 3), LOAD(LOW + STEP * (argument)),     \
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask), IF(BPF_JEQ, value, yes, no)
/* libseccomp's comparison of a whole argument. */
#define EQUAL(argument, value, yes, no)                                                    \
	LOAD(HIGH + STEP * (argument)), IF(BPF_JEQ, (uint64_t)(value) >> 32, 0, (no) + 2), \
		LOAD(LOW + STEP * (argument)), IF(BPF_JEQ, (uint32_t)(value), yes, no)
#define ABOVE(argument, value, yes, no)                                                           \
	LOAD(HIGH + STEP * (argument)), IF(BPF_JGT, (uint64_t)(value) >> 32, (yes) + 3, 0),       \
		IF(BPF_JEQ, (uint64_t)(value) >> 32, 0, (no) + 2), LOAD(LOW + STEP * (argument)), \
		IF(BPF_JGT, (uint32_t)(value), yes, no)

/* The call that the filter forbids on a new glibc: its name, NULL for none. */
static void judge(const struct sock_filter *code, size_t count, const char *forbidden)
{
	const unsigned makers = PRB_CALL_LOADS | PRB_CALL_SERVES | PRB_CALL_CRASHES | PRB_CALL_NEW;
	struct prb_error *err = prb_seccomp_judge(code, count, makers);

	if (forbidden) {
		assert_non_null(err);
		assert_non_null(strstr(err->message, forbidden));
	} else {
		assert_null(err);
	}
	prb_error_destroy(err);
}

#define JUDGE(forbidden, ...)                                     \
	do {                                                      \
		const struct sock_filter code_[] = {__VA_ARGS__}; \
		judge(code_, PRB_ARRAY_SIZE(code_), forbidden);   \
	} while (0)

/* Real programs' filters forbid none of our calls. */
static void test_usual_filters(void **state)
{
	enum { NAMESPACES = 0x7e020000, VSOCK = 40, TIOCSTI = 0x5412, GET_INFO = 22 };

	(void)state;
	JUDGE(NULL, ALLOW);
	JUDGE(NULL, RETURN(SECCOMP_RET_LOG));
	/* containers */
	JUDGE(NULL, ONLY(SYS_clone), MASKED(0, NAMESPACES, 0, 0, 1), ALLOW, KILL);
	JUDGE(NULL, ONLY(SYS_clone3), RETURN(SECCOMP_RET_ERRNO | ENOSYS));
	JUDGE(NULL, ONLY(SYS_socket), EQUAL(0, VSOCK, 0, 1), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_socket), ABOVE(0, VSOCK - 1, 0, 1), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_personality), EQUAL(0, 0, 0, 1), ALLOW, EQUAL(0, 8, 0, 1), ALLOW,
	      KILL);
	/* services */
	JUDGE(NULL, ONLY(SYS_mmap), MASKED(2, 6, 6, 0, 1), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_mprotect), MASKED(2, 4, 4, 0, 1), RETURN(SECCOMP_RET_ERRNO | EPERM),
	      ALLOW);
	JUDGE(NULL, ONLY(SYS_socket), EQUAL(0, AF_UNIX, 0, 1), ALLOW, KILL);
	JUDGE(NULL, ONLY(SYS_openat), MASKED(2, 0100, 0100, 0, 7), MASKED(3, 04000, 04000, 0, 1),
	      KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_mkdirat), MASKED(2, 06000, 0, 1, 0), KILL, ALLOW);
	/* browsers and similar programs */
	JUDGE(NULL, ONLY(SYS_ioctl), MASKED(1, 0xffffffff, TIOCSTI, 0, 1), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_futex), LOAD(LOW + STEP), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x7f),
	      IF(BPF_JEQ, 6, 0, 1), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_getrandom), LOAD(LOW + 2 * STEP), IF(BPF_JSET, ~3u, 0, 1), KILL,
	      ALLOW);
	JUDGE(NULL, ONLY(SYS_prctl), EQUAL(0, GET_INFO, 0, 1), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_clock_gettime), LOAD(LOW), IF(BPF_JGT, 1, 0, 1), KILL, ALLOW);
	/* NULL for a pointer, and a size larger than any memory of ours */
	JUDGE(NULL, ONLY(SYS_munmap), EQUAL(0, 0, 0, 1), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_mmap), ABOVE(1, 1ull << 30, 0, 1), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_mmap), ABOVE(1, 1ull << 40, 0, 1), KILL, ALLOW);
}

/* Each filter tests a value that only some of our calls have. */
static void test_values(void **state)
{
	(void)state;
	JUDGE("read()", ONLY(SYS_read), ABOVE(2, 32767, 0, 1), KILL, ALLOW);
	JUDGE("read()", ONLY(SYS_read), LOAD(LOW + 2 * STEP), IF(BPF_JEQ, 4711, 0, 1), KILL, ALLOW);
	JUDGE("fstat()", ONLY(SYS_fstat), LOAD(LOW), IF(BPF_JGE, 200, 1, 0), KILL, ALLOW);
	JUDGE("bind()", ONLY(SYS_bind), LOAD(LOW + 2 * STEP), IF(BPF_JGE, 9, 1, 0), KILL, ALLOW);
	JUDGE("mmap()", ONLY(SYS_mmap), EQUAL(5, 0, 1, 0), KILL, ALLOW);
	JUDGE("mmap()", ONLY(SYS_mmap), LOAD(HIGH), IF(BPF_JEQ, 0, 1, 0), KILL, ALLOW);
	JUDGE("munmap()", ONLY(SYS_munmap), ABOVE(1, 4095, 1, 0), KILL, ALLOW);
	JUDGE("futex()", ONLY(SYS_futex), LOAD(LOW + 2 * STEP), IF(BPF_JEQ, 0x7fffffff, 0, 1), KILL,
	      ALLOW);
	JUDGE("madvise()", ONLY(SYS_madvise), LOAD(LOW + STEP), IF(BPF_JSET, 0xfff, 0, 1), KILL,
	      ALLOW);
	/* with computed or stored values */
	JUDGE("read()", ONLY(SYS_read), LOAD(LOW + 2 * STEP),
	      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 15), IF(BPF_JEQ, 0, 1, 0), KILL, ALLOW);
	JUDGE("read()", ONLY(SYS_read), LOAD(LOW + 2 * STEP), BPF_STMT(BPF_ST, 3),
	      BPF_STMT(BPF_LDX | BPF_MEM, 3), LOAD(0), BPF_STMT(BPF_MISC | BPF_TXA, 0),
	      BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 5), IF(BPF_JEQ, 5, 0, 1), KILL, ALLOW);
	JUDGE("read()", ONLY(SYS_read), BPF_STMT(BPF_LD | BPF_IMM, 7), BPF_STMT(BPF_ST, 0),
	      LOAD(LOW + 2 * STEP), BPF_STMT(BPF_MISC | BPF_TAX, 0), BPF_STMT(BPF_LD | BPF_MEM, 0),
	      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1), KILL, ALLOW);
	/* by the address of the caller */
	JUDGE("close()", ONLY(SYS_close), LOAD(8), IF(BPF_JGE, 0x1000, 0, 1), KILL, ALLOW);
}

/* An int with its sign bit comes to a register in two ways. */
static void test_negative_numbers(void **state)
{
	(void)state;
	JUDGE("openat()", ONLY(SYS_openat), EQUAL(0, (uint32_t)-100, 0, 1), KILL, ALLOW);
	JUDGE("openat()", ONLY(SYS_openat), EQUAL(0, -100ll, 0, 1), KILL, ALLOW);
	JUDGE("openat()", ONLY(SYS_openat), EQUAL(0, -100ll, 1, 0), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_openat), EQUAL(0, 5ll << 32 | (uint32_t)-100, 0, 1), KILL, ALLOW);
	JUDGE(NULL, ONLY(SYS_openat), EQUAL(0, -99ll, 0, 1), KILL, ALLOW);
}

/* The caller's known errors. */
static void test_errors(void **state)
{
	(void)state;
	JUDGE("clone3()", ONLY(SYS_clone3), RETURN(SECCOMP_RET_ERRNO | EPERM));
	JUDGE("clone3()", ONLY(SYS_clone3), KILL);
	JUDGE(NULL, ONLY(SYS_memfd_create), RETURN(SECCOMP_RET_ERRNO | EPERM));
	/* A call that is not made, but reported as successful. */
	JUDGE("memfd_create()", ONLY(SYS_memfd_create), RETURN(SECCOMP_RET_ERRNO));
	JUDGE("memfd_create()", ONLY(SYS_memfd_create), RETURN(SECCOMP_RET_USER_NOTIF));
	JUDGE("memfd_create()", ONLY(SYS_memfd_create), RETURN(SECCOMP_RET_TRACE | EPERM));
	JUDGE("read()", ONLY(SYS_read), RETURN(SECCOMP_RET_ERRNO | ENOSYS));
	/* A computed result: always an error, or anything. */
	JUDGE(NULL, ONLY(SYS_fallocate), LOAD(LOW + 3 * STEP),
	      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
	      BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO | 1),
	      BPF_STMT(BPF_RET | BPF_A, 0));
	JUDGE("fallocate()", ONLY(SYS_fallocate), LOAD(LOW + 3 * STEP),
	      BPF_STMT(BPF_RET | BPF_A, 0));
}

/* A filter of maximal length and number of branches. */
static void test_long_filter(void **state)
{
	static struct sock_filter code[BPF_MAXINSNS];
	const size_t last = PRB_ARRAY_SIZE(code) - 1;

	(void)state;
	for (size_t i = 0; i < last; i++)
		code[i] = (struct sock_filter)IF(BPF_JEQ, (uint32_t)i, 1, 0);
	for (size_t i = 0; i < last; i += 3)
		code[i] = (struct sock_filter)LOAD(LOW + STEP * (i % 6));
	code[last - 1] = (struct sock_filter)ALLOW;
	code[last] = (struct sock_filter)ALLOW;
	judge(code, PRB_ARRAY_SIZE(code), NULL);
	code[last] = (struct sock_filter)KILL;
	judge(code, PRB_ARRAY_SIZE(code), "mmap()");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_kernel), cmocka_unit_test(test_division_by_zero),
		cmocka_unit_test(test_hostile),	      cmocka_unit_test(test_usual_filters),
		cmocka_unit_test(test_values),	      cmocka_unit_test(test_negative_numbers),
		cmocka_unit_test(test_errors),	      cmocka_unit_test(test_long_filter),
	};

	return cmocka_run_group_tests_name("seccomp", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Hijacked threads run the calls and are unchanged afterwards, also when they return on their own.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "injector/hijack/hijack.h"
#include "injector/libc/code.h"
#include "injector/hijack/mailbox.h"
#include "injector/hijack/run_to.h"
#include "tests/unit/skip.h"
#include "tests/unit/sleeper.h"

enum { TRIES = 20 };

#ifdef __x86_64__

enum {
	MXCSR = 24, /* places in the vector registers */
	XMM = 160,
	XMM_SIZE = 256,
};
static const uint8_t endless_loop[] = {0xeb, 0xfe};

/* Holds known values in registers and never changes them: every look finds the same. */
static void stand_still(void *unused)
{
	static uint8_t values[XMM_SIZE] __attribute__((aligned(16)));
	uint32_t mxcsr = 0x7f80; /* rounds towards zero */
	sigset_t blocked;

	(void)unused;
	for (size_t i = 0; i < sizeof(values); i++)
		values[i] = (uint8_t)(i * 7 + 1);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	__asm__ volatile("ldmxcsr %1\n"
			 ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
			 "movdqa 16*\\n(%0), %%xmm\\n\n"
			 ".endr\n"
			 "movq %%rsp, -8(%%rsp)\n" /* the red zone is in use */
			 "movabsq $0x1111222233334444, %%rbx\n"
			 "movabsq $0x5555666677778888, %%r15\n"
			 "stc\n"
			 "1: jmp 1b\n"
			 :
			 : "r"(values), "m"(mxcsr)
			 : "memory");
}

static const struct user_regs_struct *general(const struct prb_thread_state *state)
{
	return (const struct user_regs_struct *)state->general;
}

static void assert_same_registers(const struct prb_thread_state *now_is,
				  const struct prb_thread_state *before)
{
	enum { RESUME = 1 << 16 }; /* of the flags: interrupts set and clear it as they like */
	struct user_regs_struct was = *general(before);

	was.eflags =
		(was.eflags & ~(unsigned long long)RESUME) | (general(now_is)->eflags & RESUME);
	was.orig_rax = general(now_is)->orig_rax; /* no call is under way in either */
	assert_memory_equal(&was, general(now_is), sizeof(was));
	assert_memory_equal(before->extended + XMM, now_is->extended + XMM, XMM_SIZE);
	assert_memory_equal(before->extended + MXCSR, now_is->extended + MXCSR, 4);
	assert_int_equal(was.r15, 0x5555666677778888);
}

static void assert_same_stack(int memory, const struct prb_thread_state *before)
{
	uint64_t stack = general(before)->rsp, red_zone;

	ok(prb_mail_read(memory, stack - 8, &red_zone, sizeof(red_zone)));
	assert_int_equal(red_zone, stack);
}

#else

enum { VECTORS_SIZE = 512 + 8 }; /* with FPSR and FPCR */
static const uint8_t endless_loop[] = {0x00, 0x00, 0x00, 0x14};

/* As above. */
static void stand_still(void *unused)
{
	static uint8_t values[512] __attribute__((aligned(16)));
	uint64_t control = 3 << 22; /* rounds towards zero */
	sigset_t blocked;

	(void)unused;
	for (size_t i = 0; i < sizeof(values); i++)
		values[i] = (uint8_t)(i * 7 + 1);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	__asm__ volatile("msr fpcr, %1\n"
			 ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,"
			 "24,25,26,27,28,29,30,31\n"
			 "ldr q\\n, [%0, #16 * \\n]\n"
			 ".endr\n"
			 "mov x8, #101\n" /* as if for a call */
			 "mov x20, #0x5555\n"
			 "cmp x20, x20\n"
			 "1: b 1b\n"
			 :
			 : "r"(values), "r"(control)
			 : "memory");
}

static void assert_same_registers(const struct prb_thread_state *now_is,
				  const struct prb_thread_state *before)
{
	const struct user_regs_struct *regs = (const struct user_regs_struct *)now_is->general;

	assert_memory_equal(before->general, now_is->general, sizeof(*regs));
	assert_memory_equal(before->extended, now_is->extended, VECTORS_SIZE);
	assert_int_equal(now_is->extended[17], (uint8_t)(17 * 7 + 1));
	assert_int_equal(regs->regs[20], 0x5555);
}

/* There is no red zone. */
static void assert_same_stack(int memory, const struct prb_thread_state *before)
{
	(void)memory;
	(void)before;
}

#endif

struct hijacking {
	struct child child;
	struct prb_modules *modules;
	struct prb_libc libc;
	struct prb_hijack hijack;
};

static void begin(struct hijacking *b, sleeper *run)
{
	start(&b->child, run, NULL);
	await(&b->child, 'R', NULL);
	ok(prb_modules_create(b->child.target, &b->modules));
	b->libc = (struct prb_libc){};
	ok(prb_libc_find(b->modules, PRB_HIJACK_CREATE, &b->libc));
	ok(prb_libc_find_code(b->modules, prb_inject_arch(), &b->libc));
	b->hijack = (struct prb_hijack){
		.arch = prb_inject_arch(),
		.target = b->child.target,
		.code = b->libc.code,
	};
	ok(prb_mail_open(b->child.pid, &b->hijack.memory));
}

static void end(struct hijacking *b)
{
	close(b->hijack.memory);
	prb_libc_deinit(&b->libc);
	prb_modules_destroy(b->modules);
	finish(&b->child);
}

static void take(struct hijacking *b)
{
	ok(prb_hijack_take(&b->hijack, b->child.pid, PATIENCE * 1000));
}

static void give_back(struct hijacking *b)
{
	double pause;

	ok(prb_hijack_give_back(&b->hijack, &pause));
	assert_true(pause > 0);
}

/* The thread has reached the loop in which nothing changes. */
static void take_in_loop(struct hijacking *b)
{
	uint8_t code[sizeof(endless_loop)];
	struct prb_regs regs;

	for (double late = now() + PATIENCE; now() < late;) {
		take(b);
		b->hijack.arch->registers(&b->hijack.state, &regs);
		ok(prb_mail_read(b->hijack.memory, regs.pc, code, sizeof(code)));
		if (!memcmp(code, endless_loop, sizeof(code)))
			return;
		give_back(b);
	}
	fail_msg("it never comes to its loop");
}

static void assert_same(const struct hijacking *b, const struct prb_thread_state *before)
{
	assert_same_registers(&b->hijack.state, before);
	assert_int_equal(b->hijack.state.mask, before->mask);
	assert_same_stack(b->hijack.memory, before);
}

static void assert_calls(struct hijacking *b)
{
	const uint64_t none[6] = {}, bad[6] = {UINT64_MAX};
	int64_t result;

	ok(prb_hijack_syscall(&b->hijack, SYS_getpid, none, &result));
	assert_int_equal(result, b->child.pid);
	ok(prb_hijack_syscall(&b->hijack, SYS_close, bad, &result));
	assert_int_equal(result, -EBADF);
}

static void test_calls(void **state)
{
	static struct prb_thread_state before;
	struct hijacking b;

	(void)state;
	begin(&b, stand_still);
	take_in_loop(&b);
	before = b.hijack.state;
	assert_int_equal(before.mask, 1ull << (SIGUSR1 - 1));
	assert_same(&b, &before);
	for (int i = 0; i < TRIES; i++) {
		assert_calls(&b);
		give_back(&b);
		take(&b);
		assert_same(&b, &before);
	}
	give_back(&b);
	end(&b);
}

static void let_go(struct hijacking *b)
{
	assert_int_equal(ptrace(PTRACE_DETACH, b->child.pid, NULL, NULL), 0);
	b->hijack.stop.seized = false;
}

/* We are killed in the middle: the thread is released without being restored by us. */
static void test_way_back(void **state)
{
	static struct prb_thread_state before;
	struct hijacking b;

	(void)state;
	begin(&b, stand_still);
	take_in_loop(&b);
	before = b.hijack.state;
	for (int i = 0; i < TRIES; i++) {
		assert_calls(&b);
		let_go(&b);
		take_in_loop(&b);
		assert_same(&b, &before);
	}
	give_back(&b);
	end(&b);
}

static bool is_mapped(const struct hijacking *b, uint64_t address)
{
	uint8_t byte;
	struct prb_error *err = prb_mail_read(b->hijack.memory, address, &byte, sizeof(byte));

	prb_error_destroy(err);
	return !err;
}

/*
 * The same after a mapping was made: before its address was noted, after that, and after one more
 * call. The mapping is gone once the thread has returned.
 */
static void test_way_back_unmaps(void **state)
{
	static struct prb_thread_state before;
	const uint64_t none[6] = {};
	struct hijacking b;
	int64_t address, result;

	(void)state;
	begin(&b, stand_still);
	if (!b.libc.code.store.address) {
		end(&b);
		SKIP("the C library has no instruction that stores a result");
	}
	take_in_loop(&b);
	before = b.hijack.state;
	for (int i = 0; i < 3 * TRIES; i++) {
		ok(prb_hijack_map(&b.hijack, &address));
		assert_true(is_mapped(&b, (uint64_t)address));
		result = 0;
		if (i % 3 == 0)
			ok(prb_mail_write(b.hijack.memory, b.hijack.frame.slot, &result,
					  sizeof(result)));
		if (i % 3 == 2)
			ok(prb_hijack_syscall(&b.hijack, SYS_getpid, none, &result));
		let_go(&b);
		take_in_loop(&b);
		assert_same(&b, &before);
		assert_false(is_mapped(&b, (uint64_t)address));
	}
	give_back(&b);
	end(&b);
}

static volatile long visits;

__attribute__((noinline)) static void place(void)
{
	visits++;
}

static void visit_place(void *unused)
{
	(void)unused;
	for (;;) {
		place();
		for (volatile int i = 0; i < 1000; i++)
			;
	}
}

static bool can_run_to(struct prb_stop *stop, uint64_t address, int timeout_ms)
{
	bool reached;

	ok(prb_run_to(stop, address, timeout_ms, &reached));
	assert_true(stop->stopped);
	return reached;
}

static void stop_child(struct child *child, struct prb_stop *stop)
{
	ok(prb_stop_seize(child->pid, stop));
	ok(prb_stop_ask(stop));
	ok(prb_stop_wait(stop, PATIENCE * 1000));
}

static void test_run_to(void **state)
{
	struct child child;
	struct prb_stop stop;
	struct prb_regs regs;

	(void)state;
	if (!prb_inject_arch()->breakpoints)
		SKIP("no breakpoints on this processor");
	start(&child, visit_place, NULL);
	await(&child, 'R', NULL);
	stop_child(&child, &stop);
	for (int i = 0; i < TRIES; i++) {
		assert_true(can_run_to(&stop, (uint64_t)place, PATIENCE * 1000));
		ok(prb_stop_registers(&stop, &regs));
		assert_int_equal(regs.pc, (uint64_t)place);
	}
	assert_false(can_run_to(&stop, (uint64_t)stand_still, 5));
	prb_stop_end(&stop, &(double){0});
	finish(&child);
}

/* All signals of a program that handles or blocks them stay its own. */
static void test_no_signal_left(void **state)
{
	struct child child;
	struct prb_stop stop;
	bool reached;
	sigset_t all, before;

	(void)state;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	start(&child, visit_place, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	await(&child, 'R', NULL);
	stop_child(&child, &stop);
	struct prb_error *err = prb_run_to(&stop, (uint64_t)place, PATIENCE * 1000, &reached);
	assert_true(prb_error_catch(&err, PRB_ERROR_UNSUPPORTED));
	assert_true(stop.stopped);
	assert_false(reached);
	prb_stop_end(&stop, &(double){0});
	finish(&child);
}

/* Signals sent meanwhile are delivered, and job control stays in force. */
static void test_signals_on_the_way(void **state)
{
	struct child child;
	struct prb_stop stop;

	(void)state;
	if (!prb_inject_arch()->breakpoints)
		SKIP("no breakpoints on this processor");
	start(&child, visit_place, NULL);
	await(&child, 'R', NULL);
	stop_child(&child, &stop);
	kill(child.pid, SIGSTOP);
	assert_false(can_run_to(&stop, (uint64_t)stand_still, PATIENCE * 1000));
	assert_true(stop.group_stop);
	prb_stop_end(&stop, &(double){0});
	await(&child, 'T', NULL);
	kill(child.pid, SIGCONT);
	await(&child, 'R', NULL);
	stop_child(&child, &stop);
	kill(child.pid, SIGTERM);
	bool reached;
	struct prb_error *err = prb_run_to(&stop, (uint64_t)stand_still, PATIENCE * 1000, &reached);
	assert_true(prb_error_catch(&err, PRB_ERROR_NO_PROCESS));
	prb_target_destroy(child.target);
}

/* Does not stop while its child waits for the end of a pipe. */
static void wait_in_vfork(void *pipe_ends)
{
	const int *ends = pipe_ends;
	char byte;

	close(ends[1]);
	if (!vfork()) {
		if (read(ends[0], &byte, 1))
			_exit(1);
		_exit(0);
	}
	sigsuspend(&(sigset_t){});
}

static void *close_later(void *fd)
{
	prb_auto_free char *path = prb_format("/proc/self/task/%d/stat", getpid());
	char state = 'R';

	/* Until the main thread waits in prb_stop_end(), or after it for us. */
	while (state != 'S') {
		prb_auto_fclose FILE *stat = fopen(path, "re");

		assert_non_null(stat);
		assert_int_equal(fscanf(stat, "%*d (%*[^)]) %c", &state), 1);
		sched_yield();
	}
	close(*(int *)fd);
	return NULL;
}

/* A thread that stops only after we gave up is released nevertheless. */
static void test_stops_too_late(void **state)
{
	struct child child;
	struct prb_stop stop;
	pthread_t thread;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	start(&child, wait_in_vfork, ends);
	await(&child, 'D', NULL);
	close(ends[0]);
	ok(prb_stop_seize(child.pid, &stop));
	ok(prb_stop_ask(&stop));
	struct prb_error *err = prb_stop_wait(&stop, 1);
	assert_true(prb_error_catch(&err, PRB_ERROR_TIMEOUT));
	assert_int_equal(pthread_create(&thread, NULL, close_later, &ends[1]), 0);
	prb_stop_end(&stop, &(double){0});
	pthread_join(thread, NULL);
	await(&child, 'S', "rt_sigsuspend");
	finish(&child);
}

static void run_on_one_processor(void *niceness)
{
	cpu_set_t where;

	CPU_ZERO(&where);
	sched_getaffinity(0, sizeof(where), &where);
	for (int i = 0, found = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &where) && found++)
			CPU_CLR(i, &where);
	}
	sched_setaffinity(0, sizeof(where), &where);
	if (nice(*(int *)niceness) == -1)
		_exit(98);
	for (;;)
		;
}

static long long ran_ns(pid_t pid)
{
	char path[64];
	long long ran = -1;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lld", &ran), 1);
	fclose(file);
	return ran;
}

/* Repeats the wait if the thread got no processor at all: the machine may be busy. */
static struct prb_error *wait_while_it_runs(struct prb_stop *stop)
{
	for (double end = now() + PATIENCE;;) {
		long long ran = ran_ns(stop->tid);
		struct prb_error *err = prb_stop_wait(stop, 0);

		if (!err || err->code != PRB_ERROR_TIMEOUT || ran_ns(stop->tid) != ran ||
		    now() > end)
			return err;
		prb_error_destroy(err);
	}
}

/* A runnable thread without a processor does not count as one that does not stop. */
static void test_stops_late(void **state)
{
	struct child others[2], child;
	struct prb_stop stop;
	int low = 10, as_ever = 0;

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(others); i++)
		start(&others[i], run_on_one_processor, &as_ever);
	start(&child, run_on_one_processor, &low);
	await(&child, 'R', NULL);
	for (int i = 0; i < TRIES; i++) {
		ok(prb_stop_seize(child.pid, &stop));
		ok(prb_stop_ask(&stop));
		ok(wait_while_it_runs(&stop));
		prb_stop_end(&stop, &(double){0});
	}
	finish(&child);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(others); i++)
		finish(&others[i]);
}

static const struct {
	size_t length, at; /* at == length: no store */
	uint8_t base, words;
	int8_t offset;
	uint8_t code[20];
} stores[] = {
#ifdef __x86_64__
	/* mov %rax, (%rbx); pop %rbx; ret */
	{9, 1, 3, 1, 0, {0x90, 0x48, 0x89, 0x03, 0x5b, 0xc3, 0x90, 0x90, 0x90}},
	/* ret before; mov %rax, -8(%rbp); xor %eax, %eax; add $16, %rsp; pop %r12; ret */
	{17,
	 1,
	 6,
	 3,
	 -8,
	 {0xc3, 0x48, 0x89, 0x45, 0xf8, 0x31, 0xc0, 0x48, 0x83, 0xc4, 0x10, 0x41, 0x5c, 0xc3, 0x90,
	  0x90, 0x90}},
	/* mov %rax, -61(%rbx), whose last byte is that of a return */
	{9, 0, 3, 1, -61, {0x48, 0x89, 0x43, 0xc3, 0x5b, 0xc3, 0x90, 0x90, 0x90}},
	/* mov %rax, %rbx; ret: nothing is stored */
	{8, 8, 0, 0, 0, {0x48, 0x89, 0xc3, 0xc3, 0x90, 0x90, 0x90, 0x90}},
	/* something else before the return, or the end of the code */
	{8, 8, 0, 0, 0, {0x48, 0x89, 0x03, 0xff, 0xc3, 0x90, 0x90, 0x90}},
	{4, 4, 0, 0, 0, {0x48, 0x89, 0x03, 0x5b}},
	{1, 1, 0, 0, 0, {0xc3}},
#else
	/* nop; str x0, [x19]; ldr x19, [sp, #16]; ldp x29, x30, [sp], #32; ret */
	{20, 4, 19, 4, 0, {0x1f, 0x20, 0x03, 0xd5, 0x60, 0x02, 0x00, 0xf9, 0xf3, 0x0b,
			   0x40, 0xf9, 0xfd, 0x7b, 0xc2, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}},
	/* str x0, [x20, #24]; mov w0, #0; ldp x19, x20, [sp, #16]; ldp x29, x30, [sp], #48; ret */
	{20, 0, 20, 6, 24, {0x80, 0x0e, 0x00, 0xf9, 0x00, 0x00, 0x80, 0x52, 0xf3, 0x53,
			    0x41, 0xa9, 0xfd, 0x7b, 0xc3, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}},
	/* with authentication of the return address (autiasp) */
	{20, 20, 0, 0, 0, {0x60, 0x02, 0x00, 0xf9, 0xf3, 0x0b, 0x40, 0xf9, 0xfd, 0x7b,
			   0xc2, 0xa8, 0xbf, 0x23, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6}},
	/* str x0, [x0], str x0, [x19, #128] and str x1, [x19]; ldp x29, x30, [sp], #32; ret */
	{12, 12, 0, 0, 0, {0x00, 0x00, 0x00, 0xf9, 0xfd, 0x7b, 0xc2, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}},
	{12, 12, 0, 0, 0, {0x60, 0x42, 0x00, 0xf9, 0xfd, 0x7b, 0xc2, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}},
	{12, 12, 0, 0, 0, {0x61, 0x02, 0x00, 0xf9, 0xfd, 0x7b, 0xc2, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}},
	/* str x0, [x19]; ldp x29, x30, [sp], #32, and no return, or the end of the code */
	{12, 12, 0, 0, 0, {0x60, 0x02, 0x00, 0xf9, 0xfd, 0x7b, 0xc2, 0xa8, 0x1f, 0x20, 0x03, 0xd5}},
	{8, 8, 0, 0, 0, {0x60, 0x02, 0x00, 0xf9, 0xfd, 0x7b, 0xc2, 0xa8}},
	{3, 3, 0, 0, 0, {0x60, 0x02, 0x00}},
#endif
};

/* Finds it among any other code, and never reads beyond the end. */
static void test_find_store(void **state)
{
	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(stores); i++) {
		struct prb_store_code found = {};
		uint8_t *code = malloc(stores[i].length); /* of just that size, for sanitizers */

		assert_non_null(code);
		memcpy(code, stores[i].code, stores[i].length);
		bool is_there = prb_inject_arch()->find_store(code, stores[i].length, &found);
		assert_int_equal(is_there, stores[i].at < stores[i].length);
		if (is_there) {
			assert_int_equal(found.address, stores[i].at);
			assert_int_equal(found.base, stores[i].base);
			assert_int_equal(found.offset, stores[i].offset);
			assert_int_equal(found.words, stores[i].words);
		}
		free(code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),		cmocka_unit_test(test_way_back),
		cmocka_unit_test(test_way_back_unmaps), cmocka_unit_test(test_run_to),
		cmocka_unit_test(test_no_signal_left),	cmocka_unit_test(test_signals_on_the_way),
		cmocka_unit_test(test_stops_too_late),	cmocka_unit_test(test_stops_late),
		cmocka_unit_test(test_find_store),
	};

	return cmocka_run_group_tests_name("hijacking", tests, NULL, NULL);
}

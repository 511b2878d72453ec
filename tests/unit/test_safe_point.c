/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a thread may be hijacked: children stopped at places of every kind. */
#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "base/checked.h"
#include "injector/inject_private.h"
#include "injector/hijack/safe_point.h"
#include "target/ptrace/stop.h"
#include "tests/unit/in_range.h"
#include "tests/unit/sleeper.h"

#ifdef SYS_pause
static const char pause_call[] = "pause";
#else
static const char pause_call[] = "ppoll";
#endif

/* Judges the child's first thread where it is stopped. */
static struct prb_verdict judge(struct child *child)
{
	struct prb_verdict verdict;
	struct prb_modules *modules;
	struct prb_unwinder *unwinder;
	struct prb_libc libc = {};
	struct prb_stop stop;
	struct prb_thread_state *state = calloc(1, sizeof(*state));
	double pause;

	ok(prb_target_refresh_maps(child->target));
	ok(prb_modules_create(child->target, &modules));
	ok(prb_unwinder_create(modules, &unwinder));
	ok(prb_libc_find(modules, PRB_HIJACK_CREATE, &libc));
	ok(prb_stop_seize(child->tid, &stop));
	ok(prb_stop_ask(&stop));
	ok(prb_stop_wait(&stop, PATIENCE * 1000));
	ok(prb_inject_arch()->save(child->tid, state));

	const struct prb_safe_point safe = {modules, unwinder, &libc, prb_inject_arch()->machine};
	ok(prb_safe_point_check(&safe, prb_inject_arch(), child->tid, state, &verdict));
	prb_stop_end(&stop, &pause);
	free(state);
	prb_libc_deinit(&libc);
	prb_unwinder_destroy(unwinder);
	prb_modules_destroy(modules);
	return verdict;
}

/* The verdict on a child that sleeps in @sleeper. */
static struct prb_verdict verdict_on(sleeper *sleep_in, void *context, const char *call)
{
	struct child child;

	start(&child, sleep_in, context);
	await(&child, 'S', call);
	struct prb_verdict verdict = judge(&child);
	finish(&child);
	return verdict;
}

static void in_pause(void *unused)
{
	(void)unused;
	pause();
}

/* The sanitizers' library, an allocator, is between qsort() and its callback. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

static int compare(const void *a, const void *b)
{
	pause();
	return a < b;
}

/* A lock-free function of the C library is between. */
static void in_qsort(void *unused)
{
	int numbers[4] = {4, 3, 2, 1};

	(void)unused;
	qsort(numbers, 4, sizeof(*numbers), compare);
}

static int visit(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)info;
	(void)size;
	(void)unused;
	pause();
	return 1;
}

/* The compiler must not turn the call into a jump: its return address is needed. */
__attribute__((noinline)) static int count_modules(void)
{
	volatile int count = dl_iterate_phdr(visit, NULL);

	return count;
}

static void in_iterate(void *unused)
{
	(void)unused;
	count_modules();
}

static void at_exit(void)
{
	pause();
}

static void in_exit(void *unused)
{
	(void)unused;
	atexit(at_exit);
	exit(0);
}

static void *sleep_forever(void *unused)
{
	pause();
	return unused;
}

static void in_join(void *unused)
{
	pthread_t thread;

	(void)unused;
	pthread_create(&thread, NULL, sleep_forever, NULL);
	pthread_join(thread, NULL);
}

static int raw_thread(void *unused)
{
	(void)unused;
	syscall(SYS_ppoll, NULL, 0, NULL, NULL, 8);
	return 0;
}

/* A thread with a thread pointer that the C library never gave out. */
static void in_raw_thread(void *unused)
{
	static char stack[65536] __attribute__((aligned(64)));
	static uint64_t no_thread[2048]; /* with room on both sides of a pointer */

	(void)unused;
	clone(raw_thread, stack + sizeof(stack),
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
		      CLONE_SETTLS,
	      NULL, NULL, no_thread + 1024);
	pause();
}

static void in_futex(void *word)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, *(int *)word, NULL);
}

static void test_safe(void **state)
{
	struct prb_verdict verdict = verdict_on(in_pause, NULL, pause_call);
	int word = 0;

	(void)state;
	assert_null(verdict.why);
	assert_false(verdict.lasting);
	assert_int_equal(verdict.way_count, 0);
	if (!SANITIZED)
		assert_null(verdict_on(in_qsort, NULL, pause_call).why);
	assert_null(verdict_on(in_join, NULL, "futex").why);
	assert_null(verdict_on(in_futex, &word, "futex").why);
}

static void test_unsafe(void **state)
{
	struct prb_verdict verdict = verdict_on(in_exit, NULL, pause_call);

	(void)state;
	assert_string_equal(verdict.why, "in exit()");
	assert_false(verdict.lasting);
}

static void test_way_out(void **state)
{
	struct prb_verdict verdict = verdict_on(in_iterate, NULL, pause_call);
	uint64_t function = (uint64_t)count_modules;

	(void)state;
	assert_string_equal(verdict.why, "in dl_iterate_phdr()");
	/* A child of ours has our addresses. */
	assert_int_equal(verdict.way_count, 1);
	assert_uint_in_range(verdict.ways_out[0], function, function + 400);
}

/* The lock of a stream belongs to the C library. */
static void test_lock_of_libc(void **state)
{
	struct prb_verdict verdict = verdict_on(in_futex, stdout, "futex");

	(void)state;
	assert_string_equal(verdict.why, "waiting for a lock of the C library");
	assert_false(verdict.lasting);
}

static void test_raw_thread(void **state)
{
	struct child child;
	struct prb_candidates candidates = {};
	pid_t other = 0;

	(void)state;
	start(&child, in_raw_thread, NULL);
	await(&child, 'S', pause_call);
	ok(prb_candidates_find(child.target, &candidates));
	for (size_t i = 0; i < candidates.list.count; i++)
		if (candidates.list.items[i].tid != child.pid)
			other = candidates.list.items[i].tid;
	assert_int_not_equal(other, 0);
	child.tid = other;
	await(&child, 'S', "ppoll");
	struct prb_verdict verdict = judge(&child);
	assert_string_equal(verdict.why, "not a thread of the C library");
	assert_true(verdict.lasting);
	child.tid = child.pid;
	assert_null(judge(&child).why);
	prb_vec_free(&candidates.list);
	finish(&child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_safe),	   cmocka_unit_test(test_unsafe),
		cmocka_unit_test(test_way_out),	   cmocka_unit_test(test_lock_of_libc),
		cmocka_unit_test(test_raw_thread),
	};

	return cmocka_run_group_tests_name("safe points", tests, NULL, NULL);
}

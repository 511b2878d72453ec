/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Descriptions of threads that sleep on time, locks, children and signals. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tests/unit/skip.h"
#include "tests/unit/sleeper.h"

/* Sleeps. */

static void sleep_relative(void *unused)
{
	(void)unused;
	syscall(SYS_nanosleep, &(struct timespec){3600, 250000000}, NULL);
}

static void sleep_on_clock(void *unused)
{
	(void)unused;
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &(struct timespec){100, 0}, NULL);
}

static void sleep_until(void *clock)
{
	struct timespec end;

	clock_gettime(*(clockid_t *)clock, &end);
	end.tv_sec += 1000;
	syscall(SYS_clock_nanosleep, *(clockid_t *)clock, TIMER_ABSTIME, &end, NULL);
}

static void test_sleep(void **state)
{
	clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME};

	(void)state;
	ASSERT_SLEEPS(sleep_relative, NULL, "nanosleep", "sleep of 3600.25 s");
	ASSERT_SLEEPS(sleep_on_clock, NULL, "clock_nanosleep", "sleep of 100 s");
	for (size_t i = 0; i < PRB_ARRAY_SIZE(clocks); i++) {
		struct child child;
		double left;

		start(&child, sleep_until, &clocks[i]);
		await(&child, 'S', "clock_nanosleep");
		describe(&child);
		assert_int_equal(sscanf(child.wait.what, "sleep, %lf s left", &left), 1);
		assert_true(left > 1000 - PATIENCE && left <= 1000);
		assert_true(child.wait.left > left - 1 && child.wait.left < left + 1);
		assert_true(child.wait.asked < 0);
		finish(&child);
	}
}

/*
 * After a stop the kernel continues the sleep as restart_syscall(); we find out the original call.
 */
static void test_restarted_sleep(void **state)
{
	struct child child;

	(void)state;
	start(&child, sleep_relative, NULL);
	await(&child, 'S', "nanosleep");
	kill(child.pid, SIGSTOP);
	await(&child, 'T', NULL);
	describe(&child);
	assert_null(child.wait.call);
	assert_what(&child, "a signal to continue");
	kill(child.pid, SIGCONT);
	await(&child, 'S', "restart_syscall");
	describe(&child);
	assert_non_null(child.wait.call);
	if (!strcmp(child.wait.call, "nanosleep"))
		assert_what(&child, "sleep of 3600.25 s");
	else
		assert_what(&child, "a call that was interrupted");
	finish(&child);
}

static void *pause_beside(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* The C library makes the call elsewhere once there are threads. */
static void sleep_in_libc(void *threads)
{
	pthread_t thread;

	if (*(bool *)threads && pthread_create(&thread, NULL, pause_beside, NULL))
		_exit(1);
	nanosleep(&(struct timespec){3600, 250000000}, NULL);
}

static void test_restarted_sleep_of_libc(void **state)
{
	bool threads[] = {false, true};

	(void)state;
#ifndef __x86_64__
	SKIP("this C library keeps the number of a call nowhere");
#endif
	for (size_t i = 0; i < PRB_ARRAY_SIZE(threads); i++) {
		struct child child;

		start(&child, sleep_in_libc, &threads[i]);
		await(&child, 'S', "clock_nanosleep");
		kill(child.pid, SIGSTOP);
		await(&child, 'T', NULL);
		kill(child.pid, SIGCONT);
		await(&child, 'S', "restart_syscall");
		describe(&child);
		assert_string_equal(child.wait.call, "clock_nanosleep");
		assert_what(&child, "sleep of 3600.25 s");
		finish(&child);
	}
}

static void test_traced(void **state)
{
	struct child child;

	(void)state;
	start(&child, sleep_relative, NULL);
	await(&child, 'S', "nanosleep");
	assert_int_equal(ptrace(PTRACE_SEIZE, child.pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, child.pid, 0, 0), 0);
	await(&child, 't', NULL);
	describe(&child);
	assert_what(&child, "its debugger %d (test_wait_sysca)", getpid());
	finish(&child);
}

/* Threads and locks. */

struct shared {
	pthread_mutex_t mutex;
	pthread_t other;
	uint32_t word;
	pid_t tid;
};

static void *lock_and_sleep(void *shared)
{
	struct shared *s = shared;

	prctl(PR_SET_NAME, "owner (1)");
	pthread_mutex_lock(&s->mutex);
	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELEASE);
	for (;;)
		pause();
	return NULL;
}

static void wait_for_mutex(void *shared)
{
	struct shared *s = shared;

	pthread_create(&s->other, NULL, lock_and_sleep, s);
	while (!__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_mutex_lock(&s->mutex);
}

static void join_other(void *shared)
{
	struct shared *s = shared;

	pthread_create(&s->other, NULL, lock_and_sleep, s);
	while (!__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_join(s->other, NULL);
}

static struct shared *share(int protocol)
{
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;

	assert_true(s != MAP_FAILED);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, protocol);
	pthread_mutex_init(&s->mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return s;
}

static void test_mutex(void **state)
{
	int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct shared *s = share(protocols[i]);
		struct child child;

		start(&child, wait_for_mutex, s);
		await(&child, 'S', "futex");
		describe(&child);
		assert_what(&child, "a lock held by %d (owner (1))", s->tid);
		assert_int_equal(child.wait.owner, s->tid);
		assert_true(child.wait.futex == (uint64_t)&s->mutex);
		finish(&child);
		munmap(s, sizeof(*s));
	}
}

static void test_join(void **state)
{
	struct shared *s = share(PTHREAD_PRIO_NONE);
	struct child child;

	(void)state;
	start(&child, join_other, s);
	await(&child, 'S', "futex");
	describe(&child);
	assert_what(&child, "the end of thread %d (owner (1))", s->tid);
	assert_int_equal(child.wait.owner, 0);
	finish(&child);
	munmap(s, sizeof(*s));
}

static void wait_on_word(void *word)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){60, 0}, NULL, 0);
}

static void wait_until(void *word)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 1000;
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, 0, &end, NULL, ~0u);
}

static void test_futex(void **state)
{
	struct shared *s = share(PTHREAD_PRIO_NONE);
	struct child child;
	double left;

	(void)state;
	start(&child, wait_on_word, &s->word);
	await(&child, 'S', "futex");
	describe(&child);
	assert_what(&child, "a lock or condition, at most 60 s");
	assert_true(child.wait.asked == 60 && child.wait.futex == (uint64_t)&s->word);
	finish(&child);

	start(&child, wait_until, &s->word);
	await(&child, 'S', "futex");
	describe(&child);
	assert_int_equal(sscanf(child.wait.what, "a lock or condition, %lf s left", &left), 1);
	assert_true(left > 1000 - PATIENCE && left <= 1000);
	finish(&child);
	munmap(s, sizeof(*s));
}

/* In its own pid namespace, a process has other pids for its threads and children. */
static void enter_namespace(void *shared)
{
	pid_t inner;

	if (unshare(CLONE_NEWPID))
		_exit(97);
	inner = fork();
	if (!inner) {
		end_with(0); /* its parent is outside of the namespace */
		wait_for_mutex(shared);
	}
	waitpid(inner, NULL, 0);
}

static pid_t newest_child(pid_t parent)
{
	char path[64];
	pid_t child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	prb_auto_fclose FILE *file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1)
		;
	return child;
}

static void test_pid_namespace(void **state)
{
	struct shared *s = share(PTHREAD_PRIO_NONE);
	struct child outer, inner = {};

	(void)state;
	if (geteuid())
		SKIP("needs root");
	start(&outer, enter_namespace, s);
	await(&outer, 'S', "wait4");
	inner.pid = inner.tid = newest_child(outer.pid);
	assert_true(inner.pid > 0);
	await(&inner, 'S', "futex");
	describe(&inner);
	assert_int_not_equal(inner.wait.owner, s->tid);
	assert_what(&inner, "a lock held by %d (owner (1))", inner.wait.owner);

	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d", inner.pid, inner.wait.owner);
	assert_int_equal(access(path, F_OK), 0);
	prb_wait_deinit(&inner.wait);
	prb_target_destroy(inner.target);
	kill(inner.pid, SIGKILL);
	finish(&outer);
	munmap(s, sizeof(*s));
}

/* Children. */

static void wait_for_child(void *any)
{
	pid_t parent = getpid(), child = fork();

	if (!child) {
		end_with(parent);
		prctl(PR_SET_NAME, "a) S\n(b");
		for (;;)
			pause();
	}
	waitpid(any ? -1 : child, NULL, 0);
}

static void wait_for_many(void *unused)
{
	pid_t parent = getpid();

	for (int i = 0; i < 2; i++) {
		if (!fork()) {
			end_with(parent);
			for (;;)
				pause();
		}
	}
	wait_for_child(unused);
}

static void test_children(void **state)
{
	struct child child;
	bool any = false;

	(void)state;
	for (int i = 0; i < 2; i++, any = true) {
		start(&child, wait_for_child, any ? &any : NULL);
		await(&child, 'S', "wait4");
		/* Its new name may appear a moment later. */
		for (double end = now() + PATIENCE; now() < end;) {
			describe(&child);
			if (strstr(child.wait.what, "(a)"))
				break;
		}
		assert_what(&child, "child %d (a) S\\n(b)", newest_child(child.pid));
		finish(&child);
	}
	ASSERT_SLEEPS(wait_for_many, &any, "wait4", "any of 3 children");
}

static void start_program(void *unused)
{
	pid_t parent = getpid();

	(void)unused;
	if (!vfork()) {
		end_with(parent);
		for (;;)
			pause();
	}
}

static void test_vfork(void **state)
{
	struct child child;
	pid_t grandchild;

	(void)state;
	start(&child, start_program, NULL);
	await(&child, 'D', NULL);
	grandchild = newest_child(child.pid);
	describe(&child);
	char expected[128];
	snprintf(expected, sizeof(expected), "child %d (test_wait_sysca) to start its program",
		 grandchild);
	assert_int_equal(strncmp(child.wait.what, expected, strlen(expected)), 0);
	kill(grandchild, SIGKILL);
	finish(&child);
}

/* System V and POSIX queues. */

static void decrement(void *set)
{
	struct sembuf operation = {.sem_op = -1};

	syscall(SYS_semtimedop, *(int *)set, &operation, 1, NULL);
}

static void receive_message(void *queue)
{
	struct {
		long type;
		char text[8];
	} message;

	msgrcv(*(int *)queue, &message, sizeof(message.text), 0, 0);
}

static void receive_posix(void *queue)
{
	char text[64];

	mq_receive(*(mqd_t *)queue, text, sizeof(text), NULL);
}

static void test_system_v(void **state)
{
	int set = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600);

	(void)state;
	assert_true(set >= 0 && queue >= 0);
	ASSERT_SLEEPS(decrement, &set, "semtimedop", "semaphore set %d", set);
	ASSERT_SLEEPS(receive_message, &queue, "msgrcv", "message queue %d", queue);
	semctl(set, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
}

static void test_message_queue(void **state)
{
	char name[64];
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 64};

	(void)state;
	snprintf(name, sizeof(name), "/probing-%d", getpid());
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	if (queue == (mqd_t)-1 && errno == ENOSYS)
		SKIP("the kernel has no message queues");
	assert_true(queue >= 0);
	ASSERT_SLEEPS(receive_posix, &queue, "mq_timedreceive", "message queue %d %s", queue, name);
	mq_close(queue);
	mq_unlink(name);
}

/* Signals. */

static void wait_for_any_signal(void *unused)
{
	sigset_t none;

	(void)unused;
	sigemptyset(&none);
	sigsuspend(&none);
}

static void wait_for_signals(void *limit)
{
	sigset_t set;

	sigemptyset(&set);
	for (int signal = SIGHUP; signal <= (limit ? SIGTRAP : SIGINT); signal++)
		sigaddset(&set, signal);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigtimedwait(&set, NULL, limit);
}

static void test_signals(void **state)
{
	struct timespec limit = {90, 0};

	(void)state;
	ASSERT_SLEEPS(wait_for_any_signal, NULL, "rt_sigsuspend", "any signal");
	ASSERT_SLEEPS(wait_for_signals, NULL, "rt_sigtimedwait", "SIGHUP, SIGINT");
	ASSERT_SLEEPS(wait_for_signals, &limit, "rt_sigtimedwait",
		      "SIGHUP, SIGINT, SIGQUIT, SIGILL and 1 more, at most 90 s");
}

/* A thread on a processor waits for nothing. */
static void spin(void *unused)
{
	(void)unused;
	for (;;)
		__asm__ volatile("");
}

static void test_running(void **state)
{
	struct child child;

	(void)state;
	start(&child, spin, NULL);
	await(&child, 'R', NULL);
	describe(&child);
	assert_null(child.wait.call);
	assert_null(child.wait.what);
	finish(&child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_restarted_sleep),
		cmocka_unit_test(test_restarted_sleep_of_libc),
		cmocka_unit_test(test_traced),
		cmocka_unit_test(test_mutex),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_futex),
		cmocka_unit_test(test_pid_namespace),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_vfork),
		cmocka_unit_test(test_system_v),
		cmocka_unit_test(test_message_queue),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Children that sleep in a given system call, for tests of their description. */
#ifndef PRB_TESTS_UNIT_SLEEPER_H
#define PRB_TESTS_UNIT_SLEEPER_H

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/task.h"
#include "target/target.h"

enum { PATIENCE = 60 /* seconds until a test gives up */ };

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void ok(struct prb_error *err)
{
	if (err)
		fail_msg("%s", err->message);
}

/* A child that sleeps. */
struct child {
	pid_t pid, tid;
	struct prb_target *target;
	struct prb_task task;
	struct prb_wait wait;
};

typedef void sleeper(void *context);

/* A child must not outlive the test, not even if its parent ended before it got here. */
static inline void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(99);
}

/* Returns when the child has left fork(), which blocks all signals from glibc 2.41 on. */
static inline void start(struct child *child, sleeper *sleep_in, void *context)
{
	pid_t parent = getpid();
	int left[2];
	char byte;

	*child = (struct child){};
	assert_int_equal(pipe(left), 0);
	child->pid = child->tid = fork();
	assert_true(child->pid >= 0);
	if (!child->pid) {
		end_with(parent);
		close(left[0]);
		close(left[1]);
		sleep_in(context);
		_exit(99);
	}
	close(left[1]);
	assert_int_equal(read(left[0], &byte, 1), 0);
	close(left[0]);
}

/* Polls until the thread sleeps in this call; nothing else signals that. */
static inline void await(struct child *child, char state, const char *call)
{
	double end = now() + PATIENCE;

	if (!child->target)
		ok(prb_target_open_process(child->pid, &child->target));
	for (;;) {
		struct prb_error *err = prb_task_read(child->target, child->tid, &child->task);
		const char *name = prb_syscall_name(
			child->target->machine, child->task.in_syscall ? child->task.syscall : -1);

		if (!err && child->task.state == state && (!call || (name && !strcmp(name, call))))
			return;
		prb_error_destroy(err);
		if (now() > end)
			fail_msg("child is in state %c in %s, not %c in %s", child->task.state,
				 name ? name : "no call", state, call ? call : "any");
		sched_yield();
	}
}

static inline void describe(struct child *child)
{
	prb_wait_deinit(&child->wait);
	ok(prb_task_wait(child->target, &child->task, &child->wait));
}

static inline void finish(struct child *child)
{
	prb_wait_deinit(&child->wait);
	prb_target_destroy(child->target);
	kill(child->pid, SIGKILL);
	kill(child->pid, SIGCONT);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

static inline void assert_what(const struct child *child, const char *format, ...)
{
	char expected[512];
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	if (!child->wait.what)
		fail_msg("nothing is known, expected '%s'", expected);
	assert_string_equal(child->wait.what, expected);
}

/* For children that can be described at once: start, await, assert and end. */
#define ASSERT_SLEEPS(sleeper, context, call_name, ...)             \
	do {                                                        \
		struct child sleeping;                              \
		start(&sleeping, sleeper, context);                 \
		await(&sleeping, 'S', call_name);                   \
		describe(&sleeping);                                \
		assert_string_equal(sleeping.wait.call, call_name); \
		assert_what(&sleeping, __VA_ARGS__);                \
		finish(&sleeping);                                  \
	} while (0)

#endif

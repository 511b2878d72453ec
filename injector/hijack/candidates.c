/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/task.h"
#include "injector/hijack/pick.h"

enum {
	THREADS_MAX = 256, /* looked at in one round */
	CHURN_MAX = 100,   /* threads that may end while they are looked at */

	RANK_RESTARTS = 0, /* the kernel repeats its call, with what is left of a timeout */
	RANK_RUNNING = 1,
	RANK_UNKNOWN = 2,
	RANK_INTERRUPTED = 3, /* its call ends early and has to be repeated by us */
};

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

static int rank_of_call(uint16_t machine, long number)
{
	static const char *const restarts[] = {
		"read",	     "readv",		"poll",	 "ppoll",  "select", "pselect6",
		"nanosleep", "futex",		"wait4", "waitid", "accept", "pause",
		"accept4",   "clock_nanosleep", "write", "writev", "flock",  "rt_sigsuspend"};
	static const char *const interrupted[] = {
		"epoll_wait", "epoll_pwait",   "epoll_pwait2", "rt_sigtimedwait", "semop",
		"semtimedop", "msgrcv",	       "msgsnd",       "io_getevents",	  "io_pgetevents",
		"recvfrom",   "recvmsg",       "sendto",       "sendmsg",	  "connect",
		"recvmmsg",   "io_uring_enter"};
	const char *name = prb_syscall_name(machine, number);

	if (!name)
		return RANK_UNKNOWN;
	if (is_one_of(name, restarts, PRB_ARRAY_SIZE(restarts)))
		return RANK_RESTARTS;
	return is_one_of(name, interrupted, PRB_ARRAY_SIZE(interrupted)) ? RANK_INTERRUPTED
									 : RANK_UNKNOWN;
}

static int rank(const struct prb_target *t, const struct prb_task *task)
{
	if (task->state == 'R' || !task->in_syscall)
		return RANK_RUNNING;
	return rank_of_call(t->machine, task->syscall);
}

bool prb_call_waits(uint16_t machine, long number)
{
	int rank = number < 0 ? RANK_UNKNOWN : rank_of_call(machine, number);

	return rank == RANK_RESTARTS || rank == RANK_INTERRUPTED;
}

static struct prb_error *consider(struct prb_target *t, pid_t tid, struct prb_candidates *ret)
{
	struct prb_task task;
	struct prb_error *err = prb_task_read(t, tid, &task);

	if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS) ||
	    prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	if (strchr("ZXI", task.state))
		return NULL;
	if (task.state == 'D') {
		ret->blocked++;
		return NULL;
	}
	struct prb_candidate *candidate = prb_vec_push(&ret->list);
	if (!candidate)
		return prb_error_nomem();
	*candidate = (struct prb_candidate){tid, rank(t, &task)};
	ret->running |= candidate->rank == RANK_RUNNING;
	return NULL;
}

static int by_rank(const void *a, const void *b)
{
	const struct prb_candidate *x = a, *y = b;

	return x->rank != y->rank ? x->rank - y->rank : x->tid - y->tid;
}

struct prb_error *prb_candidates_find(struct prb_target *t, struct prb_candidates *ret)
{
	prb_auto_str struct prb_str tids = {};
	size_t count = 0;

	ret->list.count = ret->blocked = 0;
	ret->running = false;
	PRB_TRY(prb_target_list(t, &tids, "task"));
	for (const char *at = prb_str_text(&tids); *at && count < THREADS_MAX; count++) {
		char *end;
		long tid = strtol(at, &end, 10);

		PRB_TRY(consider(t, (pid_t)tid, ret));
		at = *end ? end + 1 : end;
	}
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_rank);
	return NULL;
}

/* A thread may have ended before it is opened. */
struct prb_error *prb_candidates_alive(struct prb_target *t, struct prb_target **ret)
{
	struct prb_task task;
	struct prb_error *err = NULL;

	PRB_TRY(prb_task_read(t, t->pid, &task));
	if (task.state != 'Z')
		return NULL;
	for (int i = 0; i < CHURN_MAX; i++) {
		pid_t found;

		prb_error_destroy(err);
		PRB_TRY(prb_task_oldest_other(t, &found));
		if (!found)
			return prb_error_os(ESRCH, "process %d has ended", t->pid);
		err = prb_target_open_process(found, ret);
		if (!err)
			return NULL;
	}
	return err;
}

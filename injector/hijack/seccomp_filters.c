/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which filters of system calls apply to the threads of a target, and whether they allow all. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "injector/hijack/pick.h"
#include "target/proc/text.h"
#include "target/ptrace/seccomp.h"
#include "target/ptrace/stop.h"
#include "target/task.h"

enum {
	FILTERED = 2,	   /* mode of seccomp */
	THREADS_MAX = 256, /* looked at */
	STOP_TIMEOUT_MS = 400,
};

/** How many filters apply to a thread, -1: the kernel does not count them. False if it has none. */
static bool is_filtered(struct prb_target *t, pid_t tid, long *count)
{
	prb_auto_str struct prb_str status = {};
	prb_auto_error struct prb_error *err =
		prb_target_read_file(t, &status, "task/%d/status", tid);
	const char *mode = prb_text_field(prb_str_text(&status), "Seccomp");
	const char *filters = prb_text_field(prb_str_text(&status), "Seccomp_filters");

	*count = filters ? strtol(filters, NULL, 10) : -1;
	return !err && mode && strtol(mode, NULL, 10) == FILTERED;
}

struct prb_error *prb_filters_check(struct prb_target *t, pid_t tid, unsigned calls)
{
	long count;

	return is_filtered(t, tid, &count) ? prb_seccomp_check(tid, calls) : NULL;
}

/** Stops the thread for it. A thread that ends, or does not stop, makes no call of ours. */
static struct prb_error *check_running(pid_t tid, unsigned calls)
{
	struct prb_stop stop = {};
	double pause_us;
	struct prb_error *err = prb_stop_seize_in_turn(tid, &stop);

	if (!err)
		err = prb_stop_ask(&stop);
	if (!err)
		err = prb_stop_wait(&stop, STOP_TIMEOUT_MS);
	bool stopped = !err;
	if (stopped)
		err = prb_seccomp_check(tid, calls);
	prb_stop_end(&stop, &pause_us);
	if (err &&
	    (err->code == PRB_ERROR_NO_PROCESS || (!stopped && err->code == PRB_ERROR_TIMEOUT))) {
		prb_error_destroy(err);
		return NULL;
	}
	return err;
}

struct counts {
	PRB_VEC(long) list;
};

/** True if it is a new one, which is noted. */
static struct prb_error *note(struct counts *counts, long count, bool *ret)
{
	for (size_t i = 0; i < counts->list.count; i++)
		if (counts->list.items[i] == count) {
			*ret = false;
			return NULL;
		}
	long *place = prb_vec_push(&counts->list);
	if (!place)
		return prb_error_nomem();
	*place = count;
	*ret = true;
	return NULL;
}

static struct prb_error *check_all(struct prb_target *t, unsigned calls, struct counts *counts)
{
	prb_auto_str struct prb_str tids = {};
	size_t looked = 0;

	PRB_TRY(prb_target_list(t, &tids, "task"));
	for (const char *at = prb_str_text(&tids); *at && looked < THREADS_MAX; looked++) {
		char *end;
		pid_t tid = (pid_t)strtol(at, &end, 10);
		bool is_new = false;
		long count;

		at = *end ? end + 1 : end;
		if (is_filtered(t, tid, &count))
			PRB_TRY(note(counts, count, &is_new));
		if (is_new)
			PRB_TRY(prb_error_prefix(check_running(tid, calls), "process %d", t->pid));
	}
	return NULL;
}

struct prb_error *prb_filters_check_all(struct prb_target *t, unsigned calls)
{
	struct counts counts = {};
	struct prb_error *err = check_all(t, calls, &counts);

	prb_vec_free(&counts.list);
	return err;
}

unsigned prb_filters_calls(const struct prb_libc *libc, unsigned makers)
{
	if (libc->musl)
		return makers | PRB_CALL_MUSL;
	return makers | (libc->before_2_34 ? 0 : PRB_CALL_NEW) |
	       (libc->before_2_33 ? PRB_CALL_OLD : 0) | (libc->before_2_26 ? PRB_CALL_OLDEST : 0);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/hub.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dump/inspect.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"

/* Where a hub sleeps only if it has no file to watch. */
static bool sleeps_without_files(const struct prb_dump_thread *thread)
{
	return thread->frames.count && prb_thread_is(thread, "idle") &&
	       prb_frame_is(&thread->frames.items[0], "wait", "/eventlet/hubs/poll.py");
}

static struct prb_error *is_empty_list(const struct prb_case *c, const char *name, bool *ret)
{
	const struct prb_inspect_place place = {.tid = c->dump->main_tid, .function = "run"};
	const struct prb_repr_options options = {};
	struct prb_inspected list = {};
	struct prb_error *err = prb_inspect(c->target, &place, name, &options, &list);

	*ret = !err && !strcmp(prb_str_text(&list.type), "list") &&
	       !strcmp(prb_str_text(&list.value), "[]");
	prb_inspected_deinit(&list);
	return prb_error_tolerate(err, NULL);
}

struct prb_error *prb_case_hub_is_done(struct prb_case *c, const struct prb_dump *dump,
				       int64_t switches, bool *ret)
{
	const struct prb_dump_thread *thread =
		dump && dump->threads.count == 1 ? dump->threads.items : NULL;

	*ret = false;
	if (switches < 0 || !thread || thread->tid != c->dump->main_tid || !prb_case_is_here(c) ||
	    !sleeps_without_files(thread))
		return NULL;
	prb_case_renew(c);
	if (prb_case_status(c, "Threads") != 1 || prb_case_handles_signals(c))
		return NULL;
	PRB_TRY(is_empty_list(c, "self.timers", ret));
	if (*ret)
		PRB_TRY(is_empty_list(c, "self.next_timers", ret));
	*ret = *ret && switches == prb_case_switches(c, thread->tid);
	return NULL;
}

bool prb_case_loop_has_no_timer(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	const struct prb_inspect_place place = {.tid = thread->tid, .function = "run"};
	const struct prb_repr_options options = {};
	struct prb_inspected timers = {};
	struct prb_error *err;
	bool none;

	if (!thread->frames.count || !prb_thread_is(thread, "idle") || !c->target ||
	    !prb_frame_is(&thread->frames.items[0], "get_events", "/trio/_core/_io_epoll.py"))
		return false;
	err = prb_inspect(c->target, &place, "runner.deadlines._active", &options, &timers);
	none = !err && !strcmp(prb_str_text(&timers.type), "int") &&
	       !strcmp(prb_str_text(&timers.value), "0");
	prb_error_destroy(err);
	prb_inspected_deinit(&timers);
	return none;
}

/* What is handed to twisted's reactor is run by its own thread, which waits for it. */
static bool waits_for_itself(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *call =
		prb_thread_frame(thread, "blockingCallFromThread", "/twisted/internet/threads.py");
	const struct prb_dump_frame *loop =
		prb_thread_frame(thread, "mainLoop", "/twisted/internet/base.py");

	return call && loop && call < loop && prb_thread_waits_inside(thread);
}

/* A loop that waits for work is inside of none of its callbacks. */
static bool is_in_callback(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *callback =
		prb_thread_frame(thread, "_run", "/asyncio/events.py");
	const struct prb_dump_frame *loop =
		prb_thread_frame(thread, "_run_once", "/asyncio/base_events.py");

	return callback && loop && callback < loop;
}

enum { MOST_READY = 64 }; /* callbacks of a loop that are looked at */

/* The address of the Future whose result() the thread is in; 0: not known. */
static struct prb_error *read_awaited(const struct prb_case *c, pid_t tid, uint64_t *ret)
{
	const struct prb_inspect_place place = {.tid = tid, .function = "result"};
	const struct prb_repr_options options = {};
	struct prb_inspected future = {};
	struct prb_error *err = prb_inspect(c->target, &place, "self", &options, &future);

	*ret = err || strcmp(prb_str_text(&future.type), "Future") ? 0 : future.address;
	prb_inspected_deinit(&future);
	return prb_error_tolerate(err, NULL);
}

/* What run_coroutine_threadsafe() hands to a loop has the Future in its closure. */
static struct prb_error *is_ready_for(const struct prb_case *c, pid_t tid, unsigned number,
				      uint64_t future, bool *ret, bool *last)
{
	static const char function[] = "<function run_coroutine_threadsafe.<locals>.callback at ";
	const struct prb_inspect_place place = {.tid = tid, .function = "_run_once"};
	const struct prb_repr_options options = {.max_total = 1000};
	prb_auto_free char *expression = prb_format("self._ready[%u]._callback", number);
	prb_auto_free char *closure = prb_format("self._ready[%u]._callback.__closure__", number);
	prb_auto_free char *wanted =
		prb_format(": Future object at 0x%llx>", (unsigned long long)future);
	struct prb_inspected callback = {}, cells = {};
	struct prb_error *err;

	if (!expression || !closure || !wanted)
		return prb_error_nomem();
	err = prb_inspect(c->target, &place, expression, &options, &callback);
	*last = err != NULL;
	if (!err && !strncmp(prb_str_text(&callback.value), function, strlen(function))) {
		err = prb_inspect(c->target, &place, closure, &options, &cells);
		*ret = !err && strstr(prb_str_text(&cells.value), wanted);
	}
	prb_inspected_deinit(&callback);
	prb_inspected_deinit(&cells);
	return prb_error_tolerate(err, NULL);
}

/*
 * True if the thread of a loop of asyncio waits, in one of its callbacks, for a coroutine that this
 * loop is to begin.
 */
static struct prb_error *waits_for_own_loop(const struct prb_case *c,
					    const struct prb_dump_thread *thread, bool *ret)
{
	uint64_t future;
	bool last = false;

	*ret = false;
	if (!is_in_callback(thread) ||
	    !prb_thread_frame(thread, "result", "/concurrent/futures/_base.py") ||
	    !prb_case_waits_without_limit(c, thread))
		return NULL;
	PRB_TRY(read_awaited(c, thread->tid, &future));
	for (unsigned i = 0; future && i < MOST_READY && !last && !*ret; i++)
		PRB_TRY(is_ready_for(c, thread->tid, i, future, ret, &last));
	return NULL;
}

/* True if the list has a first one. What was cancelled stays in it until its time has come. */
static struct prb_error *has_handle(const struct prb_case *c, const struct prb_inspect_place *place,
				    const char *cancelled_of_first, bool *ret)
{
	const struct prb_repr_options options = {};
	struct prb_inspected cancelled = {};
	struct prb_error *err =
		prb_inspect(c->target, place, cancelled_of_first, &options, &cancelled);

	*ret = !err && !strcmp(prb_str_text(&cancelled.value), "False");
	prb_inspected_deinit(&cancelled);
	return prb_error_tolerate(err, NULL);
}

/*
 * Seconds since the first timer of the thread's loop was to run; 0: none, or not known. *ready: a
 * callback is to run now.
 */
static struct prb_error *read_overdue(const struct prb_case *c, pid_t tid, double *ret, bool *ready)
{
	const struct prb_inspect_place place = {.tid = tid, .function = "_run_once"};
	const struct prb_repr_options options = {};
	struct prb_inspected when = {};
	struct prb_error *err;
	bool waits;

	*ret = 0;
	PRB_TRY(has_handle(c, &place, "self._ready[0]._cancelled", ready));
	PRB_TRY(has_handle(c, &place, "self._scheduled[0]._cancelled", &waits));
	if (!waits)
		return NULL;
	err = prb_inspect(c->target, &place, "self._scheduled[0]._when", &options, &when);
	if (!err && !strcmp(prb_str_text(&when.type), "float"))
		*ret = prb_clock_seconds() - strtod(prb_str_text(&when.value), NULL);
	prb_inspected_deinit(&when);
	return prb_error_tolerate(err, NULL);
}

struct prb_error *prb_case_blocked_loop(const struct prb_case *c, struct prb_blocked_loop *ret)
{
	const struct prb_dump_thread *thread;

	*ret = (struct prb_blocked_loop){};
	if (!prb_case_is_here(c))
		return NULL;
	prb_vec_each (thread, &c->dump->threads) {
		double idle = prb_case_idle(c, thread);
		bool own;

		if (!prb_thread_is(thread, "idle") || idle < prb_limit(PRB_LIMIT_LONG))
			continue;
		if (waits_for_itself(thread) && prb_case_waits_without_limit(c, thread))
			ret->itself = "the thread of twisted's reactor waits for a call that the "
				      "reactor is to make";
		PRB_TRY(waits_for_own_loop(c, thread, &own));
		if (own)
			ret->itself = "the thread of a loop of asyncio waits for a coroutine that "
				      "the same loop is to run";
		if (ret->itself) {
			ret->thread = thread;
			return NULL;
		}
		if (!is_in_callback(thread))
			continue;
		PRB_TRY(read_overdue(c, thread->tid, &ret->overdue, &ret->ready));
		/* It ran when the thread did. What says otherwise is another namespace's clock. */
		if (ret->overdue < prb_limit(PRB_LIMIT_LONG) || ret->overdue > idle + 1)
			ret->overdue = 0;
		if (ret->overdue || ret->ready) {
			ret->thread = thread;
			return NULL;
		}
	}
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/drive/drive.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "control/drive/private.h"
#include "control/gil_locks.h"
#include "control/interpreters.h"
#include "control/load.h"
#include "control/place.h"
#include "control/who_blocks.h"
#include "dump/dump.h"

/** A step to a breakpoint is begun anew after that. */
static const double RUN_SECONDS = 3600;
/** How often the agent is looked at, which may want threads to be stopped. */
static const double LOOK_SECONDS = 0.002;
/** Looking for breakpoints takes a second with millions of objects. */
static const double REQUEST_SECONDS = 60;
/** The most that the protocol has room for. */
static const double ENDLESS_SECONDS = 4e6;

void prb_drive_stop_deinit(struct prb_drive_stop *stop)
{
	prb_str_deinit(&stop->problem);
}

static void note(struct prb_drive *d, struct prb_error *err)
{
	if (d->err)
		prb_error_destroy(err);
	else
		d->err = err;
}

static void take(struct prb_drive *d, const struct prb_wire_frame *frame)
{
	uint8_t payload[PRB_WIRE_FROZEN_SIZE];

	if (frame->type == PRB_WIRE_FREEZE) {
		prb_freeze_stop(&d->freeze, frame, payload);
		note(d, prb_agent_send(d->pause.agent, PRB_WIRE_FROZEN, payload, sizeof(payload),
				       NULL, 0));
		return;
	}
	if (frame->type == PRB_WIRE_THAW || frame->type == PRB_WIRE_RESUMED)
		prb_freeze_thaw(&d->freeze);
	note(d, prb_pause_take(&d->pause, frame));
}

void prb_drive_pump(struct prb_drive *d)
{
	enum { AT_ONCE = 1000 }; /* far more than an agent sends without an answer of ours */

	for (int i = 0; i < AT_ONCE && !d->pause.over && !d->err; i++) {
		struct prb_wire_frame frame;
		struct prb_error *err = prb_agent_receive(d->pause.agent, 0, &frame);

		if (prb_error_catch(&err, PRB_ERROR_TIMEOUT) ||
		    prb_error_catch(&err, PRB_ERROR_CANCELLED))
			return;
		if (err && err->code == PRB_ERROR_NO_PROCESS)
			err = prb_agent_explain_end(d->pause.agent, err);
		if (err)
			note(d, err);
		else
			take(d, &frame);
	}
}

static struct prb_error *while_pausing(void *context)
{
	const struct prb_drive *d = context;

	return d->how.interruptions && d->how.interruptions(d->how.context)
		       ? prb_error_create(PRB_ERROR_CANCELLED, "interrupted")
		       : NULL;
}

/** Threads that wait for it are stopped elsewhere than others (control/freeze.h). */
static void find_gil(void *context, struct prb_python *py, const struct prb_py_threads *threads)
{
	const struct prb_interp *interp;

	if (threads)
		prb_vec_each (interp, &threads->interps)
			if (interp->main)
				*(struct prb_gil_locks *)context = prb_gil_locks(py, interp);
}

/**
 * Before the pause, the agent imports what it needs in it: a paused thread may hold a lock of the
 * import system. A thread that imports one of these modules holds us up, but nothing else.
 */
static struct prb_error *prepare(struct prb_drive *d)
{
	static const char request[] = "break\nprepare",
			  not_paused[] = "it was not paused; --within waits longer";
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	const struct prb_eval how = {.flags = PRB_WIRE_TRACE | PRB_WIRE_IMPORTS,
				     .timeout = d->pause.within,
				     .interruptions = d->how.interruptions,
				     .look = LOOK_SECONDS,
				     .context = d->how.context};
	prb_auto_str struct prb_str code = {};
	struct prb_agent *agent;
	struct prb_error *err;

	/* Its worker may come to the end of this in the pause, and then waits for the GIL. */
	PRB_TRY(prb_agent_reach(d->target, true, &agent));
	prb_str_puts(&code, request);
	err = prb_agent_requires(agent, PRB_WIRE_CAN_BREAK, "have breakpoints");
	/* An older agent knows no such request, and imports them in the pause. */
	if (!err && !(prb_agent_hello(agent)->capabilities & PRB_WIRE_CAN_PREPARE)) {
		prb_agent_close(agent);
		return NULL;
	}
	if (!err)
		err = prb_eval_run(agent, &how, "<probing>", &code, &result);
	prb_agent_close(agent);
	if (prb_error_catch(&err, PRB_ERROR_TIMEOUT) ||
	    (!err && result.outcome == PRB_WIRE_TIMED_OUT)) {
		PRB_TRY(prb_agent_blame_import(d->target, d->pause.within, not_paused));
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT,
					 "the agent of process %d needed over %g s to import "
					 "what breakpoints use",
					 (int)d->target->pid, d->pause.within),
			"%s", not_paused);
	}
	PRB_TRY(err);
	if (result.has_traceback)
		return prb_error_create(PRB_ERROR_FAILED, "the agent failed: %.400s",
					prb_str_text(&result.traceback));
	if (result.outcome == PRB_WIRE_OK)
		return NULL;
	d->pause.how = result.outcome;
	prb_str_append(&d->pause.text, result.text.data, result.text.length);
	return prb_pause_explain(&d->pause);
}

static struct prb_error *begin(struct prb_drive *d)
{
	const double began = prb_clock_seconds();
	struct prb_pause_state hard;

	prb_pause_state_find_hard(d->target, &hard);
	if (hard.paused)
		return prb_pause_already(d->target, &hard);
	prb_pause_init(&d->pause, d->target, d->how.within,
		       d->how.max > 0 ? d->how.max : ENDLESS_SECONDS);
	d->freeze.target = d->target;
	PRB_TRY(prepare(d));
	d->pause.spent = prb_clock_seconds() - began;
	PRB_TRY(prb_pause_ask(&d->pause, true));
	d->freeze.agent = d->pause.agent;
	prb_interpreters_look(d->target, find_gil, &d->freeze.gil);
	PRB_TRY(prb_pause_await_begin(&d->pause, while_pausing, d));
	if (!d->pause.paused || d->pause.over)
		return prb_pause_explain(&d->pause);
	return prb_step_connect(d->target, &d->agent);
}

struct prb_error *prb_drive_create(struct prb_target *t, const struct prb_drive_how *how,
				   struct prb_drive **ret)
{
	struct prb_drive *d;
	struct prb_error *err;

	if (!t->loadable)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"a %s cannot be driven: nothing runs in it",
					prb_target_kind_name(t->kind));
	d = calloc(1, sizeof(*d));
	if (!d)
		return prb_error_nomem();
	d->target = t;
	d->how = *how;
	err = begin(d);
	if (err)
		prb_drive_destroy(d);
	else
		*ret = d;
	return err;
}

static struct prb_error *never(void *context)
{
	(void)context;
	return NULL;
}

void prb_drive_destroy(struct prb_drive *d)
{
	struct prb_drive_breaks gone = {};

	if (!d)
		return;
	/* Without them the pause ends as well: the agent looks for its client then. */
	if (d->pause.paused && !d->err && !d->busy)
		prb_error_destroy(prb_drive_delete(d, 0, &gone));
	prb_drive_breaks_deinit(&gone);
	if (d->pause.paused && !d->pause.over && !d->err) {
		struct prb_error *err = prb_pause_end(&d->pause);

		if (!err)
			err = prb_pause_await_end(&d->pause, never, d);
		prb_error_destroy(err);
	}
	prb_freeze_thaw(&d->freeze);
	prb_agent_close(d->agent);
	prb_pause_deinit(&d->pause);
	prb_error_destroy(d->err);
	free(d);
}

int prb_drive_descriptor(const struct prb_drive *d)
{
	return prb_agent_descriptor(d->pause.agent);
}

struct prb_error *prb_drive_check(struct prb_drive *d)
{
	int pid = (int)d->target->pid;

	prb_drive_pump(d);
	if (d->err)
		return prb_steal(&d->err);
	if (d->busy)
		return prb_error_hint(
			prb_error_create(
				PRB_ERROR_TIMEOUT,
				"process %d runs again: evaluated code was abandoned and is "
				"still running",
				pid),
			"'probing %d dump' shows where it is", pid);
	if (!d->pause.over)
		return NULL;
	if (d->pause.how == PRB_WIRE_TIMED_OUT)
		return prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
						       "process %d runs again: the time limit of "
						       "the pause (%g s) is reached",
						       pid, d->pause.max),
				      "--max sets the limit");
	return prb_error_create(PRB_ERROR_CANCELLED, "process %d runs again: its pause was ended",
				pid);
}

/** The process runs, until the user has enough of it. */
static bool is_enough(void *context)
{
	struct prb_drive *d = context;

	prb_drive_pump(d);
	return d->pause.over || d->err ||
	       (d->how.interruptions && d->how.interruptions(d->how.context));
}

static int interruptions(void *context)
{
	struct prb_drive *d = context;

	prb_drive_pump(d);
	return d->how.interruptions ? d->how.interruptions(d->how.context) : 0;
}

/** The thread that has that name. */
static struct prb_error *find_thread(struct prb_drive *d, uint64_t ident, pid_t *ret)
{
	const struct prb_dump_options options = {
		.no_waits = true, .no_command = true, .no_modules = true, .max_frames = 1};
	const struct prb_dump_thread *thread;
	prb_auto_dump struct prb_dump *dump = NULL;

	PRB_TRY(prb_dump_create(d->target, &options, &dump));
	prb_vec_each (thread, &dump->threads)
		if (thread->ident == ident)
			*ret = thread->tid;
	return NULL;
}

static struct prb_error *report(struct prb_drive *d, struct prb_step_stop *stop,
				struct prb_drive_stop *ret)
{
	ret->breakpoint = stop->breakpoint;
	if (!stop->breakpoint)
		return NULL;
	prb_str_deinit(&ret->problem);
	ret->problem = stop->problem;
	stop->problem = (struct prb_str){};
	ret->tid = 0;
	return find_thread(d, stop->ident, &ret->tid);
}

struct prb_error *prb_drive_step(struct prb_drive *d, pid_t tid, uint32_t stride, uint32_t line,
				 struct prb_drive_stop *ret)
{
	__attribute__((cleanup(prb_step_thread_deinit))) struct prb_step_thread thread = {};
	__attribute__((cleanup(prb_step_stop_deinit))) struct prb_step_stop stop = {};
	const struct prb_step step = {.stride = stride,
				      .line = line,
				      .seconds = RUN_SECONDS,
				      .is_enough = is_enough,
				      .context = d};

	PRB_TRY(prb_drive_check(d));
	PRB_TRY(prb_step_find(d->target, tid, &thread));
	ret->tid = thread.tid;
	PRB_TRY(prb_step_to_line(d->target, d->agent, &step, &thread, &stop));
	return report(d, &stop, ret);
}

struct prb_error *prb_drive_continue(struct prb_drive *d, struct prb_drive_stop *ret)
{
	__attribute__((cleanup(prb_step_stop_deinit))) struct prb_step_stop stop = {};
	const struct prb_step step = {.seconds = RUN_SECONDS, .is_enough = is_enough, .context = d};

	do {
		PRB_TRY(prb_drive_check(d));
		PRB_TRY(prb_step_to_break(d->target, d->agent, &step, &stop));
	} while (!stop.breakpoint && !is_enough(d));
	PRB_TRY(prb_drive_check(d));
	return report(d, &stop, ret);
}

/** Runs code; what is left before it has ended leaves the connection to it. */
static struct prb_error *run(struct prb_drive *d, const struct prb_eval *how,
			     const struct prb_str *code, struct prb_eval_result *ret)
{
	struct prb_error *err = prb_eval_run(d->agent, how, "<probing>", code, ret);

	d->busy = err && (err->code == PRB_ERROR_TIMEOUT || err->code == PRB_ERROR_CANCELLED);
	return err;
}

struct prb_error *prb_drive_eval(struct prb_drive *d, pid_t tid, unsigned depth, const char *code,
				 double timeout,
				 struct prb_error *(*put)(void *, enum prb_wire_type, const void *,
							  size_t),
				 struct prb_eval_result *ret)
{
	struct prb_eval how = {.put = put,
			       .timeout = timeout,
			       .interruptions = interruptions,
			       .look = LOOK_SECONDS,
			       .context = d};
	prb_auto_str struct prb_str text = {};

	PRB_TRY(prb_drive_check(d));
	prb_str_puts(&text, code);
	PRB_TRY(prb_eval_name_frame(d->target, tid, depth, &text, &how.flags));
	return run(d, &how, &text, ret);
}

struct prb_error *prb_drive_request(struct prb_drive *d, const struct prb_str *request,
				    struct prb_str *ret)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	const struct prb_eval how = {.flags = PRB_WIRE_TRACE,
				     .timeout = REQUEST_SECONDS,
				     .interruptions = interruptions,
				     .look = LOOK_SECONDS,
				     .context = d};

	if (request->failed)
		return prb_error_nomem();
	PRB_TRY(run(d, &how, request, &result));
	if (result.has_traceback)
		return prb_error_create(PRB_ERROR_FAILED, "the agent failed: %.400s",
					prb_str_text(&result.traceback));
	PRB_TRY(prb_eval_judge(d->target, (int)d->target->pid, &how, &result));
	*ret = result.out;
	result.out = (struct prb_str){};
	return NULL;
}

struct prb_error *prb_drive_ident(struct prb_drive *d, pid_t tid, uint64_t *ret)
{
	__attribute__((cleanup(prb_step_thread_deinit))) struct prb_step_thread thread = {};

	*ret = 0;
	if (!tid)
		return NULL;
	PRB_TRY(prb_step_find(d->target, tid, &thread));
	*ret = thread.ident;
	return NULL;
}

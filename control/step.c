/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/step.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/text.h"
#include "control/who_blocks.h"
#include "dump/text/paths.h"
#include "dump/dump.h"

static const double LINE_SECONDS = 5;
/** It is paused again as soon as the GIL is free. */
static const double PATIENCE_SECONDS = 60;
/** Behind the end of a step, an agent that says nothing is asked whether it answers at all. */
static const double SILENCE_SECONDS = 2, ALIVE_SECONDS = 2;
/** How often it is looked whether the thread is there still. */
static const double LOOK_SECONDS = 0.01;

/** The only thread that is wanted of a dump; NULL: there is none. */
const struct prb_dump_thread *prb_step_dumped(const struct prb_dump *dump, pid_t tid)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads)
		if (thread->tid == tid)
			return thread;
	return NULL;
}

/** "in count at prog.py:12". */
void prb_step_put_place(struct prb_str *s, const struct prb_dump_frame *frame)
{
	const char *name = frame->qualname ? frame->qualname : frame->func;

	prb_str_puts(s, "in ");
	prb_text_escape(s, name ? name : "?");
	prb_str_puts(s, " at ");
	prb_text_escape(s, frame->file ? prb_path_last(frame->file) : "?");
	prb_str_printf(s, ":%d", frame->line);
}

static struct prb_error *keep(struct prb_step_thread *ret, const struct prb_dump_thread *thread)
{
	ret->ident = thread->ident;
	prb_str_printf(&ret->who, "thread %d", (int)thread->tid);
	if (thread->name) {
		prb_str_puts(&ret->who, " (");
		prb_text_escape(&ret->who, thread->name);
		prb_str_putc(&ret->who, ')');
	}
	if (thread->frames.count)
		prb_step_put_place(&ret->at, &thread->frames.items[0]);
	return ret->who.failed || ret->at.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_step_find(struct prb_target *t, pid_t tid, struct prb_step_thread *ret)
{
	const struct prb_dump_options options = {
		.main_only = !tid, .tid = tid, .no_waits = true, .max_frames = 1};
	const struct prb_dump_thread *thread;
	prb_auto_dump struct prb_dump *dump = NULL;

	PRB_TRY(prb_dump_create(t, &options, &dump));
	ret->tid = tid ? tid : dump->main_tid;
	thread = prb_step_dumped(dump, ret->tid);
	if (!thread || !thread->ident)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has no Python thread %d",
					 (int)t->pid, (int)ret->tid),
			"'probing %d debug --dump' shows those that it has", (int)t->pid);
	PRB_TRY(keep(ret, thread));
	return prb_tasks_create(t, &ret->tasks);
}

void prb_step_thread_deinit(struct prb_step_thread *thread)
{
	prb_str_deinit(&thread->who);
	prb_str_deinit(&thread->at);
	prb_tasks_deinit(&thread->tasks);
}

bool prb_step_has_ended(struct prb_step_thread *thread)
{
	struct prb_task_watch *task;

	prb_vec_each (task, &thread->tasks.list) {
		if (task->tid != thread->tid)
			continue;
		prb_task_note(&thread->tasks, task);
		return prb_task_has_ended(task);
	}
	return true;
}

struct prb_error *prb_step_blame_end(const struct prb_target *t,
				     const struct prb_step_thread *thread)
{
	struct prb_error *err =
		prb_error_create(PRB_ERROR_NO_PROCESS, "%s ended before it reached such a line",
				 prb_str_text(&thread->who));

	return prb_error_hint(err, "%s%s%sprocess %d is paused again",
			      thread->at.length ? "it was last seen " : "",
			      prb_str_text(&thread->at), thread->at.length ? "; " : "",
			      (int)t->pid);
}

static struct prb_error *not_paused(const struct prb_target *t)
{
	return prb_error_hint(prb_conflict_create("process %d is not paused", (int)t->pid),
			      "'probing %d debug --pause' pauses it", (int)t->pid);
}

struct prb_error *prb_step_connect(struct prb_target *t, struct prb_agent **ret)
{
	struct prb_error *err = prb_agent_connect(t, ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return not_paused(t);
	return err ? err : prb_agent_requires(*ret, PRB_WIRE_CAN_STEP, "step to lines");
}

/** Whether another client gets an answer: the agent needs no GIL for that one. */
static struct prb_error *check_alive(struct prb_target *t)
{
	struct prb_agent *other;
	struct prb_wire_frame frame;
	struct prb_error *err;

	PRB_TRY(prb_agent_connect(t, &other));
	err = prb_agent_ask(other, PRB_WIRE_STATUS, PRB_WIRE_STATUS_REPLY, ALIVE_SECONDS, &frame);
	prb_agent_close(other);
	return err;
}

/**
 * Waits for the agent's answer. A thread that has ended comes to no line: the step of one is ended,
 * and the answer comes when all threads are paused again. So is one that is enough.
 */
static struct prb_error *await(struct prb_agent *agent, const struct prb_step *how,
			       struct prb_step_thread *thread, struct prb_wire_frame *frame)
{
	double seconds = how->seconds;
	double by = prb_agent_deadline(seconds + PATIENCE_SECONDS);
	double silent = prb_agent_deadline(seconds + SILENCE_SECONDS);
	bool ended = false, alive = false;

	for (;;) {
		struct prb_error *err = prb_agent_receive(agent, LOOK_SECONDS, frame);

		if (!err && (frame->type == PRB_WIRE_DONE || frame->type == PRB_WIRE_ERROR))
			return NULL;
		bool late = err && (err->code == PRB_ERROR_TIMEOUT ||
				    (how->is_enough && err->code == PRB_ERROR_CANCELLED));

		if (err && (!late || !prb_agent_left(by) || prb_agent_never_answers(agent)))
			return err;
		if (!err) /* one that says something may be late only */
			silent = PRB_MAX(silent, prb_agent_deadline(SILENCE_SECONDS));
		prb_error_destroy(err);
		if (!alive && !prb_agent_left(silent)) {
			PRB_TRY(check_alive(prb_agent_target(agent)));
			alive = true;
		}
		if (ended || !((how->is_enough && how->is_enough(how->context)) ||
			       (thread && prb_step_has_ended(thread))))
			continue;
		ended = true;
		PRB_TRY(prb_agent_send(agent, PRB_WIRE_INTERRUPT, NULL, 0, NULL, 0));
	}
}

/** Why no answer came within @p seconds. Ends @p err, or returns it. */
static struct prb_error *explain_late(struct prb_agent *agent, struct prb_error *err,
				      double seconds)
{
	struct prb_target *t = prb_agent_target(agent);

	if (err->code == PRB_ERROR_NO_PROCESS)
		return prb_agent_explain_end(agent, err);
	if (err->code != PRB_ERROR_TIMEOUT || prb_agent_never_answers(agent) ||
	    prb_agent_long_switch_interval(t) < PATIENCE_SECONDS / 2)
		return err;
	prb_error_destroy(err);
	return prb_agent_blame_gil(t, (int)t->pid, seconds,
				   "it runs since the step, until the agent has the GIL again");
}

/** Has the agent make the step: how that ended, and what it says of it. */
static struct prb_error *ask(struct prb_agent *agent, const struct prb_step *step,
			     struct prb_step_thread *thread, uint32_t *how, struct prb_str *text)
{
	const struct prb_wire_step wire = {
		.us = (uint32_t)(step->seconds * 1e6),
		.stride = step->stride,
		.thread = thread ? thread->ident : 0,
		.line = step->line,
	};
	uint8_t payload[PRB_WIRE_STEP_SIZE];
	struct prb_wire_frame frame;
	struct prb_error *err;

	prb_wire_put_step(payload, &wire);
	PRB_TRY(prb_agent_request(agent, step->seconds, PRB_WIRE_STEP, payload, sizeof(payload),
				  NULL, 0));
	err = await(agent, step, thread, &frame);
	if (err)
		return explain_late(agent, err, step->seconds + PATIENCE_SECONDS);
	if (!prb_wire_get_number32(&frame, PRB_WIRE_DONE, how))
		return prb_error_create(PRB_ERROR_FAILED, "the agent refused: %.*s",
					(int)PRB_MIN(frame.length, 400u),
					(const char *)frame.payload);
	prb_str_append(text, frame.payload + 4, frame.length - 4);
	return text->failed ? prb_error_nomem() : NULL;
}

/** The error for a step that was not made, of which the agent says @p text. */
static struct prb_error *blame(struct prb_target *t, const struct prb_step *step, uint32_t how,
			       const struct prb_str *text)
{
	if (how == PRB_WIRE_NO_GIL)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT,
					 "process %d made no step within %g s: %.200s", (int)t->pid,
					 step->stride == PRB_WIRE_STRIDE_TIME ? LINE_SECONDS
									      : step->seconds,
					 prb_str_text(text)),
			"a step begins when no code is evaluated");
	if (!text->length)
		return not_paused(t);
	return prb_error_create(how == PRB_WIRE_REFUSED ? PRB_ERROR_UNSUPPORTED : PRB_ERROR_FAILED,
				"process %d made no step: %.400s", (int)t->pid, prb_str_text(text));
}

void prb_step_stop_deinit(struct prb_step_stop *stop)
{
	prb_str_deinit(&stop->problem);
}

/** Reads "NUMBER IDENT PROBLEM". */
static struct prb_error *take_stop(const struct prb_str *text, struct prb_step_stop *ret)
{
	unsigned long long ident = 0;
	int used = 0;

	ret->breakpoint = 0;
	prb_str_truncate(&ret->problem, 0);
	if (sscanf(prb_str_text(text), "%u %llu %n", &ret->breakpoint, &ident, &used) < 2)
		return NULL;
	ret->ident = ident;
	prb_text_escape(&ret->problem, prb_str_text(text) + used);
	return ret->problem.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_step_to_line(struct prb_target *t, struct prb_agent *agent,
				   const struct prb_step *step, struct prb_step_thread *thread,
				   struct prb_step_stop *stop)
{
	prb_auto_str struct prb_str text = {};
	struct prb_step asked = *step;
	uint32_t how = 0;

	if (asked.seconds <= 0)
		asked.seconds = LINE_SECONDS;
	PRB_TRY(ask(agent, &asked, thread, &how, &text));
	if (how == PRB_WIRE_OK)
		return take_stop(&text, stop);
	if (how != PRB_WIRE_TIMED_OUT)
		return blame(t, &asked, how, &text);
	if (step->is_enough && step->is_enough(step->context))
		return prb_error_create(PRB_ERROR_CANCELLED, "the step was interrupted");
	return prb_step_has_ended(thread)
		       ? prb_step_blame_end(t, thread)
		       : prb_agent_blame_line(t, thread->tid, asked.seconds, prb_str_text(&text));
}

struct prb_error *prb_step_to_break(struct prb_target *t, struct prb_agent *agent,
				    const struct prb_step *step, struct prb_step_stop *stop)
{
	prb_auto_str struct prb_str text = {};
	struct prb_step asked = *step;
	uint32_t how = 0;

	asked.stride = PRB_WIRE_STRIDE_BREAK;
	asked.line = 0;
	PRB_TRY(ask(agent, &asked, NULL, &how, &text));
	if (how != PRB_WIRE_OK && how != PRB_WIRE_TIMED_OUT)
		return blame(t, &asked, how, &text);
	if (how == PRB_WIRE_TIMED_OUT)
		prb_str_truncate(&text, 0);
	return take_stop(&text, stop);
}

struct prb_error *prb_step_for_time(struct prb_target *t, struct prb_agent *agent, double seconds)
{
	const struct prb_step step = {.stride = PRB_WIRE_STRIDE_TIME, .seconds = seconds};
	prb_auto_str struct prb_str text = {};
	uint32_t how = 0;

	PRB_TRY(ask(agent, &step, NULL, &how, &text));
	return how == PRB_WIRE_OK ? NULL : blame(t, &step, how, &text);
}

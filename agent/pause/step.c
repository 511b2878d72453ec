/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps: a paused program runs for a time, or until one of its threads comes to a line. */
#include <string.h>

#include "agent/client/connection.h"
#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/pause/pause.h"
#include "agent/pause/private.h"
#include "agent/trace/stepping.h"

static struct prba_pausing *const pausing = &prba_pausing;
static const char too_late[] = "the pause has ended",
		  interpreter_ends[] = "the pause has ended, since the interpreter does";

/** True if the stepping client has left, or has cancelled the step. */
static bool is_given_up(const struct prba_connection *c)
{
	return atomic_load(&c->job.state) == PRBA_CANCELLED;
}

/** Without a GIL a step is served as a job is. */
static void set_served(struct prba_connection *c)
{
	prba_pause_lock();
	pausing->served = c;
	pausing->opened = false;
	prba_pause_unlock();
}

/**
 * Sees to it that the thread stops at its line. Without a GIL that takes a world that runs, and
 * threads that do not: they are stopped one by one.
 */
static const char *begin(struct prba_connection *by, struct prba_connection *c)
{
	const char *problem;

	if (!prba_python_stops_world())
		return prba_stepping_begin(&c->job.step, &pausing->wake);
	set_served(c);
	prba_pause_freeze(by);
	prba_python_start_world();
	prba_pause_set_state(c, PRBA_JOB_RUNS);
	problem = prba_stepping_begin(&c->job.step, &pausing->wake);
	prba_pause_set_state(c, PRBA_JOB_RAN);
	prba_python_stop_world();
	set_served(NULL);
	prba_pause_tell(by, PRB_WIRE_THAW, NULL, 0);
	return problem;
}

bool prba_pause_take(struct prba_connection *by)
{
	if (!prba_python_acquire(&by->job.python))
		return false;
	/* Which takes a world that runs, where there is no GIL. */
	prba_stepping_end();
	if (prba_python_stops_world())
		prba_python_stop_world();
	return true;
}

/** Lets the program run until the step is through; false if Python could not be taken again. */
static bool let_run(struct prba_connection *by, const struct prba_connection *c)
{
	int64_t started = prba_pause_now_us(), end = started + c->job.step.us, now = started;
	bool taken;

	prba_python_let_go(&by->job.python);
	while (now < end) {
		uint32_t seen = atomic_load(&pausing->wake);

		if (prba_pause_has_to_end() || is_given_up(c) || prba_stepping_arrived())
			break;
		prba_wait_for(&pausing->wake, seen, (uint32_t)(end - now));
		now = prba_pause_now_us();
	}
	taken = prba_pause_take(by);
	prba_pause_lock();
	pausing->ran_us += prba_pause_now_us() - started;
	prba_pause_unlock();
	return taken;
}

bool prba_pause_make_step(struct prba_connection *by)
{
	struct prba_connection *c;
	enum prb_wire_outcome how = PRB_WIRE_REFUSED;
	const char *problem = NULL;
	bool to_line, taken = true, arrived;

	prba_pause_lock();
	c = pausing->steps;
	pausing->step_begun = true;
	prba_pause_unlock();
	/* It was withdrawn since it was seen. */
	if (!c)
		return true;
	to_line = c->job.step.stride != PRB_WIRE_STRIDE_TIME;
	if (to_line)
		problem = begin(by, c);
	if (!problem) {
		taken = let_run(by, c);
		arrived = prba_stepping_release();
		how = !taken || (to_line && !arrived && prba_pause_has_to_end())
			      ? PRB_WIRE_INTERRUPTED
		      : to_line && !arrived ? PRB_WIRE_TIMED_OUT
					    : PRB_WIRE_OK;
	}
	prba_pause_lock();
	pausing->stepped = true;
	pausing->step_how = how;
	pausing->step_text = problem			   ? problem
			     : !taken			   ? interpreter_ends
			     : how == PRB_WIRE_INTERRUPTED ? too_late
			     : how == PRB_WIRE_TIMED_OUT   ? prba_stepping_lost()
							   : prba_stepping_stop();
	prba_pause_changed();
	return taken;
}

/** Asks the holder for a step, or returns why there is none. */
static enum prb_wire_outcome ask(struct prba_connection *c, const char **text)
{
	enum prb_wire_outcome how = PRB_WIRE_OK;

	*text = "";
	prba_pause_lock();
	if (!pausing->held || pausing->ends) {
		how = PRB_WIRE_REFUSED;
	} else if (pausing->steps) {
		how = PRB_WIRE_FAILED;
		*text = "a step of another client is not over";
	} else {
		pausing->steps = c;
		pausing->stepped = pausing->step_begun = false;
	}
	prba_pause_changed();
	return how;
}

/** How long a step waits for code of another client before it begins. */
static int64_t patience_us(const struct prb_wire_step *step)
{
	enum { OF_TIME_US = 5000000 };

	return step->stride == PRB_WIRE_STRIDE_TIME || step->stride == PRB_WIRE_STRIDE_BREAK
		       ? OF_TIME_US
		       : step->us;
}

/**
 * Under the lock: a step that was not begun by @p until_us, since the holder runs code of another
 * client, is taken back. @p wait_us: how long to wait for another look, 0 for as long as it takes.
 */
static bool is_late(struct prba_connection *c, int64_t until_us, uint32_t *wait_us)
{
	const struct prba_connection *other = prba_pause_others_code(c);
	int64_t left = until_us - prba_pause_now_us();

	*wait_us = 0;
	if (pausing->step_begun || !other)
		return false;
	prba_pause_describe_code(other, c->job.why_late);
	*wait_us = left > 0 ? (uint32_t)left : 0;
	return left <= 0 || is_given_up(c);
}

/** Under the lock: how the step ended, if it did. */
static bool is_through(struct prba_connection *c, bool late, enum prb_wire_outcome *how,
		       const char **text)
{
	bool over = !pausing->held || (pausing->ends && !pausing->step_begun);

	if (!pausing->stepped && !over && !late)
		return false;
	if (pausing->stepped) {
		*how = pausing->step_how;
		*text = pausing->step_text;
	} else {
		*how = over || is_given_up(c) ? PRB_WIRE_INTERRUPTED : PRB_WIRE_NO_GIL;
		*text = over ? too_late : c->job.why_late;
	}
	pausing->steps = NULL;
	c->job.serving = PRBA_JOB_NOT_HANDED;
	return true;
}

enum prb_wire_outcome prba_pause_step(struct prba_connection *c, const char **text)
{
	int64_t until = prba_pause_now_us() + patience_us(&c->job.step);
	enum prb_wire_outcome how;
	bool through = false;

	if (!c->job.step.us)
		c->job.step.us = 1;
	atomic_store(&c->job.also_wake, &pausing->wake);
	how = ask(c, text);
	if (how != PRB_WIRE_OK)
		return how;
	while (!through) {
		uint32_t seen = atomic_load(&pausing->wake), wait_us;
		bool begins;

		prba_pause_lock();
		begins = c->job.serving == PRBA_JOB_RUNS;
		through = is_through(c, is_late(c, until, &wait_us), &how, text);
		prba_pause_unlock();
		if (!through && begins)
			prba_pause_watch(c, seen);
		else if (!through)
			prba_wait_for(&pausing->wake, seen, wait_us);
	}
	return how;
}

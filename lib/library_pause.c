/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: pausing a process by its agent, and stepping in the pause. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "control/pause.h"
#include "control/step.h"
#include "lib/library_private.h"

static const double MAX_SECONDS = 3600;

/* Earlier reads are stale once the process has run or is paused. */
static struct prb_error *begin(struct probing *p, struct prb_target **ret)
{
	if (prb_session_target_count(p->session) != 1)
		return prb_error_create(PRB_ERROR_USAGE, "one target is paused, not %zu",
					prb_session_target_count(p->session));
	*ret = prb_session_target(p->session);
	if (!(*ret)->loadable)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"a %s cannot be paused: nothing runs in it",
					prb_target_kind_name((*ret)->kind));
	prb_session_end_instants(p->session);
	return NULL;
}

static struct prb_error *check(void *session)
{
	return prb_session_check(session);
}

static struct prb_error *wait_for_pause(struct probing *p, struct prb_pause *pause)
{
	PRB_TRY(prb_pause_ask(pause, false));
	PRB_TRY(prb_pause_await_begin(pause, check, p->session));
	return pause->paused && !pause->over ? NULL : prb_pause_explain(pause);
}

void prb_library_pause_destroy(struct prb_pause *pause)
{
	if (pause)
		prb_pause_deinit(pause);
	free(pause);
}

static struct prb_error *begin_pause(struct probing *p, const struct probing_pause_options *options)
{
	struct probing_pause_options known = {};
	struct prb_pause_state hard;
	struct prb_target *target;

	if (p->pause)
		return prb_error_create(PRB_ERROR_USAGE, "this session has paused its target "
							 "already: probing_resume() ends that");
	if (options)
		memcpy(&known, options, PRB_MIN(options->size, sizeof(known)));
	if (known.within > MAX_SECONDS || known.max > MAX_SECONDS)
		return prb_error_create(PRB_ERROR_USAGE, "a pause lasts one hour at most");
	PRB_TRY(begin(p, &target));
	prb_pause_state_find_hard(target, &hard);
	if (hard.paused)
		return prb_pause_already(target, &hard);

	struct prb_pause *pause = malloc(sizeof(*pause));
	if (!pause)
		return prb_error_nomem();
	prb_pause_init(pause, target, known.within, known.max);
	struct prb_error *err = wait_for_pause(p, pause);
	if (err)
		prb_library_pause_destroy(pause);
	else
		p->pause = pause;
	return err;
}

struct probing_error *probing_pause(struct probing *p, const struct probing_pause_options *options)
{
	struct prb_error *err = begin_pause(p, options);

	prb_session_settle(p->session);
	return prb_public_error(err);
}

static struct prb_error *end_pause(struct prb_session *session, struct prb_pause *pause)
{
	struct prb_error *err = prb_pause_end(pause);

	if (!err)
		err = prb_pause_await_end(pause, check, session);
	/* The agent may have ended the connection with the pause. */
	if (err || pause->how != PRB_WIRE_TIMED_OUT)
		return err;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_TIMEOUT,
				 "the pause of process %d had ended: its limit of %g s was reached",
				 (int)pause->target->pid, pause->max),
		"pause it with a larger limit");
}

struct probing_error *probing_resume(struct probing *p, double *seconds)
{
	struct prb_pause *pause = p->pause;
	struct prb_error *err;

	if (seconds)
		*seconds = 0;
	if (!pause)
		return prb_public_error(prb_error_create(PRB_ERROR_USAGE,
							 "this session has not paused its target"));
	p->pause = NULL;
	err = end_pause(p->session, pause);
	if (seconds && pause->held_us > 0)
		*seconds = (double)pause->held_us / 1e6;
	prb_library_pause_destroy(pause);
	prb_session_end_instants(p->session);
	prb_session_settle(p->session);
	return prb_public_error(err);
}

static struct prb_error *step_to_line(struct prb_target *t, struct prb_agent *agent, pid_t tid,
				      enum probing_stride stride, double seconds)
{
	__attribute__((cleanup(prb_step_thread_deinit))) struct prb_step_thread thread = {};
	static const uint32_t strides[] = {
		[PROBING_STEP_INTO] = PRB_WIRE_STRIDE_INTO,
		[PROBING_STEP_OVER] = PRB_WIRE_STRIDE_OVER,
		[PROBING_STEP_OUT] = PRB_WIRE_STRIDE_OUT,
	};

	const struct prb_step step = {.stride = strides[stride], .seconds = seconds};
	__attribute__((cleanup(prb_step_stop_deinit))) struct prb_step_stop stop = {};

	PRB_TRY(prb_step_find(t, tid, &thread));
	return prb_step_to_line(t, agent, &step, &thread, &stop);
}

static struct prb_error *step(struct probing *p, int64_t tid, enum probing_stride stride,
			      double seconds)
{
	struct prb_agent *agent = NULL;
	struct prb_target *target;

	if ((unsigned)stride > PROBING_STEP_TIME || tid < 0 || tid > INT_MAX ||
	    !(seconds >= 0 && seconds <= MAX_SECONDS) ||
	    (stride == PROBING_STEP_TIME && (tid || !(seconds > 0))))
		return prb_error_create(PRB_ERROR_USAGE,
					"a step needs a kind, a thread and at most one hour; by "
					"time, no thread and its time");
	PRB_TRY(begin(p, &target));
	struct prb_error *err = prb_step_connect(target, &agent);
	if (!err && stride == PROBING_STEP_TIME)
		err = prb_step_for_time(target, agent, seconds);
	else if (!err)
		err = step_to_line(target, agent, (pid_t)tid, stride, seconds);
	prb_agent_close(agent);
	return err;
}

struct probing_error *probing_step(struct probing *p, int64_t tid, enum probing_stride stride,
				   double seconds)
{
	return prb_public_error(step(p, tid, stride, seconds));
}

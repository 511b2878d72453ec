/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/pause.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/conflict.h"
#include "control/load.h"
#include "control/who_blocks.h"
#include "target/ptrace/fault_step.h"

static const double MAX_SECONDS = 600, WITHIN_SECONDS = 2;
/** How long an agent may take beyond the time in which it is to answer. */
static const double ANSWER_SECONDS = 5;
static const double LOOK_SECONDS = 0.05;
static const double SENDING_SECONDS = 2.5;

void prb_pause_init(struct prb_pause *pause, struct prb_target *t, double within, double max)
{
	*pause = (struct prb_pause){
		.target = t,
		.within = within > 0 ? within : WITHIN_SECONDS,
		.max = max > 0 ? max : MAX_SECONDS,
		.held_us = -1,
	};
}

void prb_pause_deinit(struct prb_pause *pause)
{
	prb_agent_close(pause->agent);
	prb_str_deinit(&pause->text);
	pause->agent = NULL;
}

/** Seconds that it has to begin. */
static double left(const struct prb_pause *pause)
{
	static const double LEAST_SECONDS = 0.1;

	return PRB_MAX(LEAST_SECONDS, pause->within - pause->spent);
}

struct prb_error *prb_pause_ask(struct prb_pause *pause, bool freezes)
{
	uint8_t payload[PRB_WIRE_PAUSE_SIZE];

	PRB_TRY(prb_agent_reach(pause->target, true, &pause->agent));
	PRB_TRY(prb_agent_requires(pause->agent, PRB_WIRE_CAN_PAUSE, "pause it"));
	prb_wire_put32(payload, freezes ? PRB_WIRE_FREEZES : 0);
	prb_wire_put32(payload + 4, (uint32_t)(left(pause) * 1e3 + 1));
	prb_wire_put32(payload + 8, (uint32_t)(pause->max * 1e3 + 1));
	prb_fault_step();
	pause->asked = prb_clock_seconds();
	return prb_agent_request(pause->agent, -1, PRB_WIRE_PAUSE, payload, sizeof(payload), NULL,
				 0);
}

struct prb_error *prb_pause_already(const struct prb_target *t, const struct prb_pause_state *state)
{
	prb_auto_str struct prb_str by = {};

	prb_pause_state_put(state, &by);
	return prb_error_hint(prb_conflict_create("process %d is paused already, %s", (int)t->pid,
						  prb_str_text(&by)),
			      "'probing %d resume' ends that pause", (int)t->pid);
}

/** Why the agent does not accept the request: another client has paused the process, mostly. */
static struct prb_error *explain_refusal(const struct prb_pause *pause,
					 const struct prb_wire_frame *frame)
{
	struct prb_pause_state state;

	prb_pause_state_find(pause->target, &state);
	if (state.paused)
		return prb_pause_already(pause->target, &state);
	return prb_conflict_create("the agent refused: %.*s", (int)PRB_MIN(frame->length, 400u),
				   (const char *)frame->payload);
}

struct prb_error *prb_pause_take(struct prb_pause *pause, const struct prb_wire_frame *frame)
{
	uint32_t how;
	uint64_t held_us;

	switch (frame->type) {
	case PRB_WIRE_PAUSED:
		pause->paused = prb_clock_seconds();
		break;
	case PRB_WIRE_RESUMED:
		if (prb_wire_get_number64(frame, PRB_WIRE_RESUMED, &held_us))
			pause->held_us = (int64_t)held_us;
		break;
	case PRB_WIRE_DONE:
		pause->over = true;
		pause->how =
			prb_wire_get_number32(frame, PRB_WIRE_DONE, &how) ? how : PRB_WIRE_FAILED;
		if (frame->length > 4)
			prb_str_append(&pause->text, frame->payload + 4, frame->length - 4);
		break;
	case PRB_WIRE_ERROR:
		return explain_refusal(pause, frame);
	default: /* of a later version */
		break;
	}
	return NULL;
}

struct prb_error *prb_pause_end(struct prb_pause *pause)
{
	return prb_agent_send(pause->agent, PRB_WIRE_INTERRUPT, NULL, 0, NULL, 0);
}

static struct prb_error *await(struct prb_pause *pause, bool begin, double seconds,
			       prb_pause_check *check, void *context)
{
	/* One that sends something else is told from a silent one only later (client.h). */
	double by = prb_agent_deadline(seconds + SENDING_SECONDS);

	prb_agent_limit(pause->agent, seconds);
	while (!pause->over && !(begin && pause->paused)) {
		struct prb_wire_frame frame;
		struct prb_error *err = prb_agent_receive(pause->agent, LOOK_SECONDS, &frame);

		if (err && err->code == PRB_ERROR_NO_PROCESS)
			return prb_agent_explain_end(pause->agent, err);
		if (err &&
		    (err->code != PRB_ERROR_TIMEOUT || !prb_agent_left(by) ||
		     prb_agent_never_answers(pause->agent)) &&
		    err->code != PRB_ERROR_CANCELLED)
			return err;
		if (!err)
			PRB_TRY(prb_pause_take(pause, &frame));
		prb_error_destroy(err);
		PRB_TRY(check(context));
	}
	prb_agent_limit(pause->agent, -1);
	return NULL;
}

struct prb_error *prb_pause_await_begin(struct prb_pause *pause, prb_pause_check *check,
					void *context)
{
	return await(pause, true, left(pause) + ANSWER_SECONDS, check, context);
}

struct prb_error *prb_pause_await_end(struct prb_pause *pause, prb_pause_check *check,
				      void *context)
{
	return await(pause, false, ANSWER_SECONDS, check, context);
}

struct prb_error *prb_pause_explain(struct prb_pause *pause)
{
	int pid = (int)pause->target->pid;

	switch (pause->how) {
	case PRB_WIRE_NO_GIL:
		if (pause->text.length)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_TIMEOUT,
						 "process %d was not paused within %g s: %.200s",
						 pid, pause->within, prb_str_text(&pause->text)),
				"the code began in an earlier pause; --within waits longer for it");
		return prb_agent_blame_gil(
			pause->target, pause->target->pid, pause->within,
			"it was not paused; --within waits longer, --hard stops it by "
			"ptrace");
	case PRB_WIRE_INTERRUPTED:
		return prb_error_create(PRB_ERROR_CANCELLED, "it was not paused yet");
	case PRB_WIRE_MAIN_NOT_REACHED:
		return prb_agent_blame_main(pause->target, pause->within, false);
	default:
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "process %d cannot be paused: %.400s", pid,
						       prb_str_text(&pause->text)),
				      "--hard stops it by ptrace");
	}
}

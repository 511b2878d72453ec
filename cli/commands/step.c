/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/who_blocks.h"
#include "control/agent_client.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/commands/step_place.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "target/spec/target_spec.h"

struct step_settings {
	double time, timeout;
	int tid;
	bool over, out, json;
};

static const double LINE_SECONDS = 5, MAX_STEP_SECONDS = 3600;
/** It is paused again as soon as the GIL is free. */
static const double PATIENCE_SECONDS = 60;
/** How often it is looked whether the thread is there still. */
static const double LOOK_SECONDS = 0.01;

static struct prb_error *not_paused(const struct prb_target *t)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_FAILED, "process %d is not paused", (int)t->pid),
		"'probing %d debug --pause' pauses it", (int)t->pid);
}

static struct prb_error *check(const struct step_settings *s)
{
	if (s->time > MAX_STEP_SECONDS || s->timeout > MAX_STEP_SECONDS)
		return prb_error_create(PRB_ERROR_USAGE, "a step lasts one hour at most");
	if (s->over && s->out)
		return prb_error_create(PRB_ERROR_USAGE, "--over and --out exclude each other");
	if (s->time > 0 && (s->over || s->out || s->tid || s->timeout > 0))
		return prb_error_create(PRB_ERROR_USAGE,
					"--time excludes --over, --out, --tid and --timeout");
	return NULL;
}

static struct prb_error *connect(struct prb_target *t, struct prb_agent **ret)
{
	struct prb_error *err = prb_agent_connect(t, ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return not_paused(t);
	if (!err && !(prb_agent_hello(*ret)->capabilities & PRB_WIRE_CAN_STEP))
		err = prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "the agent of process %d is of an earlier version",
					 (int)t->pid),
			"'probing %d eject' stops it; then this one is loaded", (int)t->pid);
	return err;
}

/**
 * Waits for the agent's answer. A thread that has ended comes to no line: the step of one is ended,
 * and the answer comes when all threads are paused again.
 */
static struct prb_error *await(struct prb_agent *agent, double seconds,
			       struct prb_step_thread *thread, struct prb_wire_frame *frame)
{
	double by = prb_agent_deadline(seconds);
	bool ended = !thread;

	for (;;) {
		struct prb_error *err = prb_agent_receive(agent, LOOK_SECONDS, frame);

		if (!err && (frame->type == PRB_WIRE_DONE || frame->type == PRB_WIRE_ERROR))
			return NULL;
		if (err && (err->code != PRB_ERROR_TIMEOUT || !prb_agent_left(by)))
			return err;
		if (!err && !prb_agent_left(by))
			return prb_error_create(PRB_ERROR_TIMEOUT,
						"the agent of process %d does not answer",
						(int)prb_agent_target(agent)->pid);
		prb_error_destroy(err);
		if (ended || !prb_step_has_ended(thread))
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
	if (err->code != PRB_ERROR_TIMEOUT ||
	    prb_agent_long_switch_interval(t) < PATIENCE_SECONDS / 2)
		return err;
	prb_error_destroy(err);
	return prb_agent_blame_gil(t, (int)t->pid, seconds,
				   "it runs since the step, until the agent has the GIL again");
}

/** Has the agent make the step: how that ended, and what it says of it. */
static struct prb_error *ask(struct prb_agent *agent, const struct prb_wire_step *step,
			     struct prb_step_thread *thread, uint32_t *how, struct prb_str *text)
{
	uint8_t payload[PRB_WIRE_STEP_SIZE];
	struct prb_wire_frame frame;
	struct prb_error *err;

	prb_wire_put_step(payload, step);
	PRB_TRY(prb_agent_send(agent, PRB_WIRE_STEP, payload, sizeof(payload), NULL, 0));
	err = await(agent, step->us / 1e6 + PATIENCE_SECONDS, thread, &frame);
	if (err)
		return explain_late(agent, err, step->us / 1e6 + PATIENCE_SECONDS);
	if (!prb_wire_get_number32(&frame, PRB_WIRE_DONE, how))
		return prb_error_create(PRB_ERROR_FAILED, "the agent refused: %.*s",
					(int)PRB_MIN(frame.length, 400u),
					(const char *)frame.payload);
	prb_str_append(text, frame.payload + 4, frame.length - 4);
	return text->failed ? prb_error_nomem() : NULL;
}

/** @p thread: whose step it is to a line, or NULL. */
static struct prb_error *make(struct prb_target *t, struct prb_agent *agent,
			      const struct prb_wire_step *step, struct prb_step_thread *thread)
{
	prb_auto_str struct prb_str text = {};
	uint32_t how = 0;

	PRB_TRY(ask(agent, step, thread, &how, &text));
	if (how == PRB_WIRE_OK)
		return NULL;
	if (thread && how == PRB_WIRE_TIMED_OUT)
		return prb_step_has_ended(thread)
			       ? prb_step_blame_end(t, thread)
			       : prb_agent_blame_line(t, thread->tid, step->us / 1e6,
						      prb_str_text(&text));
	if (how == PRB_WIRE_NO_GIL)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT,
					 "process %d made no step within %g s: %.200s", (int)t->pid,
					 thread ? step->us / 1e6 : LINE_SECONDS,
					 prb_str_text(&text)),
			"a step begins when no code is evaluated");
	if (!text.length)
		return not_paused(t);
	return prb_error_create(how == PRB_WIRE_REFUSED ? PRB_ERROR_UNSUPPORTED : PRB_ERROR_FAILED,
				"process %d made no step: %.400s", (int)t->pid,
				prb_str_text(&text));
}

static struct prb_error *step_to_line(struct prb_target *t, struct prb_agent *agent,
				      const struct step_settings *s)
{
	__attribute__((cleanup(prb_step_thread_deinit))) struct prb_step_thread thread = {};
	struct prb_wire_step step = {
		.us = (uint32_t)((s->timeout > 0 ? s->timeout : LINE_SECONDS) * 1e6),
		.stride = s->over  ? PRB_WIRE_STRIDE_OVER
			  : s->out ? PRB_WIRE_STRIDE_OUT
				   : PRB_WIRE_STRIDE_INTO,
	};

	PRB_TRY(prb_step_find(t, s->tid, &thread));
	step.thread = thread.ident;
	PRB_TRY(make(t, agent, &step, &thread));
	return prb_step_tell(t, thread.tid, s->json);
}

static struct prb_error *step_for_time(struct prb_target *t, struct prb_agent *agent,
				       const struct step_settings *s)
{
	struct prb_wire_step step = {.us = (uint32_t)(s->time * 1e6)};
	prb_auto_str struct prb_str text = {};

	PRB_TRY(make(t, agent, &step, NULL));
	if (s->json) {
		prb_str_printf(&text, "{\"pid\":%d}", (int)t->pid);
	} else {
		prb_str_printf(&text, "%d is paused again after running for ", (int)t->pid);
		prb_text_duration(&text, s->time);
	}
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct step_settings *s = settings;
	struct prb_agent *agent = NULL;
	struct prb_target *target;
	struct prb_error *err;

	PRB_TRY(check(s));
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	err = connect(target, &agent);
	if (!err)
		err = s->time > 0 ? step_for_time(target, agent, s)
				  : step_to_line(target, agent, s);
	prb_agent_close(agent);
	prb_target_destroy(target);
	return err;
}

#define PLACE(member) PRB_COMPLETE_NOTHING, offsetof(struct step_settings, member)

const struct prb_command prb_command_step = {
	.rank = 120,
	.for_clients = true,
	.name = "step",
	.summary = "Run a paused target to its next Python line, or for a moment",
	.description = "Resumes a target that 'probing debug --pause' holds until its main "
		       "thread, or the thread --tid, reaches its next Python line, possibly in a "
		       "called function. Then the target is paused again and the place is "
		       "printed. All other threads run meanwhile. If the thread reaches no line "
		       "within --timeout, the target is paused where it is, and the exit code is "
		       "5. If the thread ends first, the exit code is 6.\n\n"
		       "Stepping by lines is refused if the program has a tracer of its own, "
		       "such as coverage or a debugger. It is not possible under --hard.",
	.options = (const struct prb_option[]){{"over", 0, PRB_OPTION_FLAG, NULL,
						"Do not stop in functions that this one calls",
						PLACE(over), .for_clients = true},
					       {"out", 0, PRB_OPTION_FLAG, NULL,
						"Stop at the next line of the caller", PLACE(out),
						.for_clients = true},
					       {"tid", 0, PRB_OPTION_NUMBER, "TID",
						"Thread to step (default: the main thread)",
						PLACE(tid), .for_clients = true},
					       {"timeout", 0, PRB_OPTION_SECONDS, "TIME",
						"Give up after TIME and pause again (default: 5 s)",
						PLACE(timeout), .for_clients = true},
					       {"time", 0, PRB_OPTION_SECONDS, "TIME",
						"Run for TIME instead of to a line: 50ms, 2s",
						PLACE(time), .for_clients = true},
					       {"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON",
						PLACE(json), .for_clients = true},
					       {}},
	.settings_size = sizeof(struct step_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_PROCESS,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 step", "Step the main thread to its next line"},
			{"probing 4242 step --over --tid 4250", "Step another thread, over calls"},
			{"probing 4242 step --time 100ms", "Run for a tenth of a second"},
			{}},
	.run = run,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/command.h"
#include "command/output.h"
#include "cli/commands/pause/step_place.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "target/spec/target_spec.h"

struct step_settings {
	double time, timeout;
	int tid;
	bool over, out, json;
};

static const double MAX_STEP_SECONDS = 3600;

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

static struct prb_error *step_to_line(struct prb_target *t, struct prb_agent *agent,
				      const struct step_settings *s)
{
	__attribute__((cleanup(prb_step_thread_deinit))) struct prb_step_thread thread = {};
	__attribute__((cleanup(prb_step_stop_deinit))) struct prb_step_stop stop = {};
	const struct prb_step step = {
		.stride = s->over  ? PRB_WIRE_STRIDE_OVER
			  : s->out ? PRB_WIRE_STRIDE_OUT
				   : PRB_WIRE_STRIDE_INTO,
		.seconds = s->timeout,
	};

	PRB_TRY(prb_step_find(t, s->tid, &thread));
	PRB_TRY(prb_step_to_line(t, agent, &step, &thread, &stop));
	return prb_step_tell(t, thread.tid, s->json);
}

static struct prb_error *step_for_time(struct prb_target *t, struct prb_agent *agent,
				       const struct step_settings *s)
{
	prb_auto_str struct prb_str text = {};

	PRB_TRY(prb_step_for_time(t, agent, s->time));
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
	prb_auto_target struct prb_target *target = NULL;
	struct prb_error *err;

	PRB_TRY(check(s));
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	err = prb_step_connect(target, &agent);
	if (!err)
		err = s->time > 0 ? step_for_time(target, agent, s)
				  : step_to_line(target, agent, s);
	prb_agent_close(agent);
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

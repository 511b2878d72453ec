/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/torch/exact/exact.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "command/output.h"
#include "control/load.h"
#include "control/eval.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/torch/asking.h"
#include "target/spec/command_line.h"
#include "target/spec/target_spec.h"

enum { STEPS = 10 };
static const double default_seconds = 60;

/** Returns when the steps are sampled, the time is over, or on Ctrl-C. */
static struct prb_error *sample(struct prb_target *target, struct prb_agent *agent,
				const struct prb_performance_settings *s)
{
	double seconds = s->record.duration > 0 ? s->record.duration : default_seconds;
	struct prb_eval how = {.lasts = seconds};
	struct prb_eval_result result = {};
	prb_auto_str struct prb_str code = {};
	struct prb_error *err;

	prb_str_printf(&code, "exact\n%d\n%.3f", s->torch.steps ? s->torch.steps : STEPS, seconds);
	err = prb_torch_ask(target, agent, &how, &code, "timing steps", " and shows what there is",
			    &result);
	if (!err && result.outcome == PRB_WIRE_RAISED)
		err = prb_torch_refusal(result.has_traceback ? &result.traceback : &result.err,
					"steps cannot be timed",
					"without --exact nothing has to be in the process");
	else if (!err && result.outcome != PRB_WIRE_INTERRUPTED)
		err = prb_eval_judge(target, target->pid, &how, &result);
	prb_eval_result_deinit(&result);
	return err;
}

static struct prb_error *reach(struct prb_target *target, struct prb_agent **ret)
{
	PRB_TRY(prb_agent_reach(target, true, ret));

	struct prb_error *err = prb_agent_requires(*ret, PRB_WIRE_CAN_TORCH, "time steps of torch");

	if (err)
		prb_agent_close(prb_steal(ret));
	return err;
}

static struct prb_error *write_file(const struct prb_torch_rings *rings,
				    const struct prb_exact_about *about,
				    const struct prb_performance_settings *s,
				    const struct prb_profile_format *format)
{
	const struct prb_profile_choice choice = {.weight = PRB_WEIGHT_WALL};
	prb_auto_recording struct prb_recording *recording = NULL;

	PRB_TRY(prb_exact_recording(rings, about, &recording));
	return prb_performance_write(recording, &choice, &s->out, format);
}

static struct prb_error *show(struct prb_target *target, const char *python, int64_t since,
			      const struct prb_performance_settings *s,
			      const struct prb_profile_format *format)
{
	__attribute__((cleanup(prb_torch_rings_deinit))) struct prb_torch_rings rings = {};
	__attribute__((cleanup(prb_exact_deinit))) struct prb_exact exact = {};
	prb_auto_str struct prb_str text = {};
	prb_auto_free char *command = NULL;
	struct prb_exact_about about = {.pid = target->pid, .python = python};

	PRB_TRY(prb_performance_command_line(target, &command));
	about.command = command;
	PRB_TRY(prb_torch_rings_read(target, since, &rings));
	PRB_TRY(prb_exact_make(&rings, &exact));
	if (format)
		PRB_TRY(write_file(&rings, &about, s, format));
	if (format && !s->out.json)
		return NULL;
	PRB_TRY((s->out.json ? prb_exact_json : prb_exact_text)(&exact, &about, &text));
	PRB_TRY(prb_output_lines(&text, s->out.json));
	return prb_output_flush();
}

static struct prb_error *time_steps(struct prb_target *target,
				    const struct prb_performance_settings *s,
				    const struct prb_profile_format *format)
{
	prb_auto_free char *python = NULL;
	struct prb_agent *agent = NULL;
	int64_t since = prb_clock_calendar_ns();
	struct prb_error *err;

	PRB_TRY(reach(target, &agent));
	err = prb_str_copy(prb_agent_hello(agent)->python, &python);
	if (!err)
		err = sample(target, agent, s);
	prb_agent_close(agent);
	return err ? err : show(target, python, since, s, format);
}

struct prb_error *prb_performance_exact(const struct prb_cli *cli,
					const struct prb_performance_settings *s,
					const struct prb_profile_format *format)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_error *err;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	err = target->live ? time_steps(target, s, format)
			   : prb_error_create(PRB_ERROR_UNSUPPORTED,
					      "--exact needs a process that runs; this is a %s",
					      prb_target_kind_name(target->kind));
	return prb_command_line_name(target, err);
}

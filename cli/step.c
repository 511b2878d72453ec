/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/agent_client.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/base/str.h"
#include "dwarf/base/text.h"
#include "sql/target_spec.h"

struct step_settings {
	double time;
};

static const double STEP_SECONDS = 0.01, MAX_STEP_SECONDS = 3600;
/** It stands again as soon as the GIL is free. */
static const double PATIENCE_SECONDS = 60;

static struct prb_error *step(struct prb_target *t, struct prb_agent *agent, double seconds)
{
	uint8_t payload[PRB_WIRE_STEP_SIZE];
	struct prb_wire_frame frame;
	uint32_t how;

	if (!(prb_agent_hello(agent)->capabilities & PRB_WIRE_CAN_PAUSE))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the agent of process %d is of an earlier version",
					(int)t->pid);
	prb_wire_put32(payload, (uint32_t)(seconds * 1e6));
	PRB_TRY(prb_agent_send(agent, PRB_WIRE_STEP, payload, sizeof(payload), NULL, 0));
	do {
		PRB_TRY(prb_agent_receive(agent, seconds + PATIENCE_SECONDS, &frame));
	} while (frame.type != PRB_WIRE_DONE && frame.type != PRB_WIRE_ERROR);
	if (prb_wire_get_number32(&frame, PRB_WIRE_DONE, &how) && how == PRB_WIRE_OK)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_FAILED, "process %d is not paused", (int)t->pid),
		"'probing %d debug --pause' pauses it", (int)t->pid);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct step_settings *s = settings;
	double seconds = s->time > 0 ? s->time : STEP_SECONDS;
	prb_auto_str struct prb_str text = {};
	struct prb_agent *agent = NULL;
	struct prb_target *target;

	if (seconds > MAX_STEP_SECONDS)
		return prb_error_create(PRB_ERROR_USAGE, "a step is an hour long at most");
	PRB_TRY(prb_spec_open(cli->target, cli->exe, &target));

	struct prb_error *err = prb_agent_connect(target, &agent);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = prb_error_create(PRB_ERROR_FAILED, "process %d is not paused",
				       (int)target->pid);
	if (!err)
		err = step(target, agent, seconds);
	prb_str_printf(&text, "%d stands again, after it ran for ", (int)target->pid);
	prb_text_duration(&text, seconds);
	prb_str_putc(&text, '\n');
	prb_agent_close(agent);
	prb_target_destroy(target);
	return err ? err : prb_output(&text);
}

const struct prb_command prb_command_step = {
	.name = "step",
	.summary = "Let a paused target run for a moment",
	.description = "The target, which 'probing debug --pause' holds, runs for TIME and then "
		       "stands again. One that is stopped by --hard has no steps.",
	.options = (const struct prb_option[]){{"time", 0, PRB_OPTION_SECONDS, "TIME",
						"How long: 50ms, 2s; without it, 10 ms",
						PRB_COMPLETE_NOTHING,
						offsetof(struct step_settings, time)},
					       {}},
	.settings_size = sizeof(struct step_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_PROCESS,
	.examples = (const struct prb_example[]){{"probing 4242 step --time 100ms",
						  "See where it is a tenth of a second later"},
						 {}},
	.run = run,
};

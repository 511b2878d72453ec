/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/client.h"
#include "control/load.h"
#include "control/serving.h"
#include "command/command.h"
#include "command/output.h"
#include "control/pause_state.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "target/spec/target_spec.h"

struct eject_settings {
	bool json;
};

/** The outcome for the agent and its library. */
struct ejection {
	pid_t pid;
	bool ran;		      /**< there was an agent, which has stopped */
	bool unmapped;		      /**< its library is gone */
	struct prb_pause_state pause; /**< that it ended */
	const char *why;	      /**< it is not, or NULL; may lie in `reason` */
	struct prb_str reason;
	struct prb_serving library; /**< of the agent that has stopped */
};

static struct prb_error *stop_agent(struct prb_target *t, struct ejection *e)
{
	struct prb_agent *agent = NULL;
	struct prb_error *err = prb_agent_connect(t, &agent);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	prb_serving_find(t, &e->library);
	if (!err)
		err = prb_agent_stop(agent);
	prb_agent_close(agent);
	e->ran = !err;
	return err;
}

/** The agent may have been of another build, whose library only a program of that build unmaps. */
static struct prb_error *check_mapped(struct prb_target *t, struct ejection *e)
{
	prb_auto_free char *path = prb_serving_mapped(t, &e->library);

	if (!path)
		return NULL;
	prb_text_escape(&e->reason, path);
	prb_str_puts(&e->reason, e->library.path ? " is of another build than this program"
						 : " may be its library");
	if (e->reason.failed)
		return prb_error_nomem();
	e->why = prb_str_text(&e->reason);
	return NULL;
}

/**
 * Success means that the agent has stopped; if its library stays mapped, the reason is reported.
 */
static struct prb_error *unmap_library(struct prb_target *t, struct ejection *e)
{
	struct prb_inject_result result = {};
	struct prb_error *err = prb_agent_unload(t, &result, &e->why);

	if (err && !e->ran)
		return err;
	if (err) {
		prb_str_puts(&e->reason, err->message);
		e->why = prb_str_text(&e->reason);
		prb_error_destroy(err);
		return NULL;
	}
	if (result.absent && !e->ran)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "process %d has no agent",
					(int)t->pid);
	if (result.absent)
		e->why = "it is of another build than this program";
	if (e->ran && (result.absent || result.unloaded))
		PRB_TRY(check_mapped(t, e));
	e->unmapped = !e->why;
	return NULL;
}

static void put_text(const struct ejection *e, struct prb_str *s)
{
	prb_str_printf(s, "the agent of process %d %s", (int)e->pid,
		       e->ran ? "has stopped" : "did not run");
	if (e->unmapped)
		prb_str_puts(s, ", and its library is unmapped\n");
	else
		prb_str_printf(s, "; its library stays mapped: %s\n", e->why);
	if (!e->pause.paused)
		return;
	prb_str_puts(s, "this ended a pause ");
	prb_pause_state_put(&e->pause, s);
	prb_str_putc(s, '\n');
}

static void put_json(const struct ejection *e, struct prb_str *s)
{
	struct prb_json json = {s};

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", e->pid);
	prb_json_bool(&json, "stopped", e->ran);
	prb_json_bool(&json, "unmapped", e->unmapped);
	prb_json_text(&json, "reason", e->why);
	prb_pause_state_json(&e->pause, &json);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct eject_settings *s = settings;
	struct ejection ejection = {};
	prb_auto_str struct prb_str text = {};
	prb_auto_target struct prb_target *target = NULL;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	ejection.pid = target->pid;

	prb_pause_state_find(target, &ejection.pause);

	struct prb_error *err = stop_agent(target, &ejection);
	if (!err)
		err = unmap_library(target, &ejection);
	if (!err)
		(s->json ? put_json : put_text)(&ejection, &text);
	prb_str_deinit(&ejection.reason);
	prb_serving_deinit(&ejection.library);
	return err ? err : prb_output(&text);
}

const struct prb_command prb_command_eject = {
	.rank = 140,
	.for_clients = true,
	.name = "eject",
	.summary = "Stop the agent in the target and unmap its library",
	.description = "Interrupts running evaluations, ends the agent's threads, removes its "
		       "socket and unmaps its library from the target. If the library has to "
		       "stay mapped, the reason is printed; it then costs only its memory.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct eject_settings, json), .for_clients = true},
			{}},
	.settings_size = sizeof(struct eject_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_PROCESS,
	.examples = (const struct prb_example[]){{"probing 4242 eject", "Remove the agent"}, {}},
	.run = run,
};

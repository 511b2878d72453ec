/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/client.h"
#include "cli/commands/agent/relay.h"
#include "command/command.h"
#include "command/output.h"
#include "remote/serve/known.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "target/spec/target_spec.h"

struct agent_settings {
	bool json, no_inject;
};

static const double STATUS_SECONDS = 2;

/** Lines of "key=value", as they are or as JSON. */
static void put_status(const char *text, bool as_json, struct prb_str *ret)
{
	prb_auto_free char *copy = strdup(text);
	struct prb_json json = {.out = ret};
	char *rest = NULL;

	if (as_json)
		prb_json_open(&json, NULL, '{');
	for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *value = strchr(line, '=');
		char *end = NULL;

		if (!value)
			continue;
		*value++ = 0;

		long long number = strtoll(value, &end, 10);
		bool absent = number == -1 && value != end && !*end;

		/* "paused_us=-1": it is not paused. */
		if (!as_json && absent)
			continue;
		if (!as_json) {
			prb_text_column(ret, line, 14);
			prb_text_escape(ret, value);
			prb_str_putc(ret, '\n');
		} else if (absent) {
			prb_json_null(&json, line);
		} else if (*value && !*end) {
			prb_json_integer(&json, line, number);
		} else {
			prb_json_text(&json, line, value);
		}
	}
	if (as_json) {
		prb_json_close(&json, '}');
		prb_str_putc(ret, '\n');
	}
}

static struct prb_error *show_status(const struct prb_target *t, struct prb_agent *agent, bool json)
{
	prb_auto_str struct prb_str raw = {}, text = {}, served = {};
	struct prb_wire_frame frame;

	PRB_TRY(prb_agent_ask(agent, PRB_WIRE_STATUS, PRB_WIRE_STATUS_REPLY, STATUS_SECONDS,
			      &frame));
	prb_str_append(&raw, frame.payload, frame.length);
	prb_serve_known_find(t->pid, &served);
	if (served.length)
		prb_str_printf(&raw, "served_at=%s\n", prb_str_text(&served));
	put_status(prb_str_text(&raw), json, &text);
	return prb_output_lines(&text, json);
}

static struct prb_error *stop(struct prb_agent *agent, pid_t pid, bool json)
{
	prb_auto_str struct prb_str text = {};

	PRB_TRY(prb_agent_stop(agent));
	if (json)
		prb_str_printf(&text, "{\"pid\":%d,\"stopped\":true}\n", (int)pid);
	else
		prb_str_printf(&text, "the agent of process %d has stopped\n", (int)pid);
	return prb_output(&text);
}

static struct prb_error *with_agent(const struct prb_cli *cli, bool stops, bool json)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_agent *agent = NULL;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));

	struct prb_error *err = prb_agent_connect(target, &agent);
	if (!err)
		err = stops ? stop(agent, target->pid, json) : show_status(target, agent, json);
	prb_agent_close(agent);
	return err;
}

static struct prb_error *relay(const struct prb_cli *cli, bool may_load)
{
	prb_auto_target struct prb_target *target = NULL;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	return prb_agent_relay(target, may_load);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct agent_settings *s = settings;
	const char *verb = cli->argument_count ? cli->arguments[0] : "status";

	if (strcmp(verb, "status") != 0 && strcmp(verb, "stop") != 0 && strcmp(verb, "relay") != 0)
		return prb_error_create(PRB_ERROR_USAGE,
					"the agent can be asked for its 'status', to 'stop' and to "
					"'relay', not to '%.100s'",
					verb);
	if (!cli->target)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no target given"),
				      "for example 'probing 4242 agent status'");
	if (!strcmp(verb, "relay"))
		return relay(cli, !s->no_inject);
	return with_agent(cli, !strcmp(verb, "stop"), s->json);
}

static const struct prb_option options[] = {
	{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
	 offsetof(struct agent_settings, json), .for_clients = true},
	{"no-inject", 0, PRB_OPTION_FLAG, NULL, "relay: fail if the target has no agent",
	 PRB_COMPLETE_NOTHING, offsetof(struct agent_settings, no_inject), .for_clients = true},
	{}};

const struct prb_command prb_command_agent = {
	.rank = 130,
	.for_clients = true,
	.name = "agent",
	.summary = "Show the state of the agent in the target, or stop it",
	.description = "status prints the agent's version, the target's Python version, the "
		       "number of connected clients and the path of the socket. stop interrupts "
		       "running evaluations, ends the agent's threads and removes its socket; "
		       "the library stays mapped and can be started again. 'probing eject' also "
		       "unmaps it. relay connects stdin and stdout to the agent's socket, for "
		       "protocol clients on other machines.",
	.options = options,
	.settings_size = sizeof(struct agent_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[status|stop|relay]",
	.max_arguments = 1,
	.complete = PRB_COMPLETE_REQUEST,
	.examples = (const struct prb_example[]){{"probing 4242 agent status", "Show its state"},
						 {"probing 4242 agent stop", "Stop it"},
						 {}},
	.run = run,
};

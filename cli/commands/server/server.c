/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing server`: the processes of an inference server, and what keeps its requests. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/server/server.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/output.h"
#include "judge/limits.h"
#include "target/spec/target_spec.h"

struct settings {
	bool json, exit_zero;
};

extern const struct prb_rule prb_rule_server;

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct settings *s = settings;
	prb_auto_server_looks struct prb_server_looks looks = {};
	prb_auto_findings struct prb_findings findings = {};
	prb_auto_server_waits struct prb_server_waits waits = {};
	const struct prb_server_shown shown = {&looks, &findings, &waits};
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_str struct prb_str text = {};
	struct prb_case c = {.words = cli->target};

	PRB_TRY(prb_limits_check());
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	if (!target->live || !target->local)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"'%.200s' is no process of this machine", cli->target);
	c.pid = target->pid;
	PRB_TRY(prb_server_looks_read(&looks, target->pid, PRB_DUMP_DEFAULT));
	if (!looks.now.processes.count)
		return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						       "%d is no process of an inference server "
						       "that is known",
						       (int)target->pid),
				      "docs/howto/add-server.md says how to describe another one");
	PRB_TRY(prb_server_judge(&prb_rule_server, &c, &looks, &findings));
	PRB_TRY(prb_server_waits_read(&looks.now, &waits));
	if (s->json)
		prb_server_json(&shown, c.pid, &text);
	else
		prb_server_text(&shown, &text);
	PRB_TRY(prb_output_lines(&text, s->json));
	/* A guess is none of a fault that a script may act on; 'probing check' ignores it, too. */
	if (findings.list.count && !s->exit_zero &&
	    findings.list.items[0]->confidence != PRB_CONFIDENCE_LOW)
		prb_exit_pass((PRB_FINDING_EXIT + (int)findings.list.items[0]->kind) << 8);
	return NULL;
}

const struct prb_command prb_command_server = {
	.rank = 45,
	.name = "server",
	.summary = "Show an inference server: its processes, its requests, and what keeps them",
	.description =
		"TARGET is any process of the server. Prints its processes with their parts (API "
		"server, scheduler, workers), what each does, how many requests are where, and the "
		"KV cache; and in one sentence what keeps the requests, as 'probing why' does. All "
		"is read from outside, by descriptions of the servers' classes: of vLLM, SGLang, "
		"LMDeploy, transformers, Ray Serve, llama.cpp and TensorRT-LLM, and those of your "
		"own in "
		"the folder that "
		"PROBING_ENGINES names.\n\n"
		"The exit code is 24 if requests do not move, and 0 where that is a guess of low "
		"confidence. The tables inference.requests, "
		"inference.queues and inference.kv have each request.",
	.options =
		(const struct prb_option[]){{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON",
					     PRB_COMPLETE_NOTHING, offsetof(struct settings, json)},
					    {"exit-zero", 0, PRB_OPTION_FLAG, NULL,
					     "Exit with 0 also where requests do not move",
					     PRB_COMPLETE_NOTHING,
					     offsetof(struct settings, exit_zero)},
					    {}},
	.settings_size = sizeof(struct settings),
	.target_use = PRB_TARGET_ONE,
	.only_processes = true,
	.complete = PRB_COMPLETE_PROCESS,
	.examples = (const struct prb_example[]){{"probing server 4242", "Of any of its processes"},
						 {"probing server VLLM", "By a title"},
						 {}},
	.run = run,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing mcp`: tools for coding assistants. */
#include <unistd.h>

#include "command/command.h"
#include "gateway/mcp/mcp.h"

struct mcp_settings {
	bool allow_write;
};

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct mcp_settings *s = settings;
	struct prb_texts targets = cli->targets;

	for (size_t i = 0; i < cli->argument_count && targets.count < PRB_MAX_TEXTS; i++)
		targets.items[targets.count++] = cli->arguments[i];
	return prb_mcp_run(&(struct prb_mcp_options){
		.targets = &targets,
		.places = &cli->places,
		.allow_write = s->allow_write,
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
	});
}

const struct prb_command prb_command_mcp = {
	.rank = 87,
	.name = "mcp",
	.summary = "Offer tools to a coding assistant, over stdin and stdout",
	.description =
		"Speaks the Model Context Protocol: an assistant that is told to start this "
		"command can list processes, read stacks and values, run SQL, sample, save "
		"snapshots and run skills. Without TARGET, for all processes that may be read; "
		"files have to be named here.\n\n"
		"Targets are only read. --allow-write adds a tool that runs code in them; each of "
		"its calls is told on stderr.",
	.options =
		(const struct prb_option[]){
			{"allow-write", 0, PRB_OPTION_FLAG, NULL,
			 "Let the assistant run code in the targets", PRB_COMPLETE_NOTHING,
			 offsetof(struct mcp_settings, allow_write)},
			{},
		},
	.settings_size = sizeof(struct mcp_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "TARGET…",
	.max_arguments = PRB_MAX_TEXTS,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing mcp", "All processes of this machine"},
			{"probing mcp core.4242", "A core file"},
			{},
		},
	.run = run,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/command.h"
#include "cli/commands/dump/dump_command.h"

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	return prb_dump_command(cli, settings, false);
}

const struct prb_command prb_command_dump = {
	.rank = 30,
	.for_clients = true,
	.name = "dump",
	.summary = "Print the stack of every thread (short for 'debug --dump')",
	.description = "Same as 'probing debug --dump'; see 'probing help debug'.",
	.options = (const struct prb_option[]){PRB_DUMP_OPTIONS, {}},
	.settings_size = sizeof(struct prb_dump_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){{"probing dump 4242", "What are its threads doing?"},
					     {}},
	.run = run,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/command.h"
#include "cli/commands/debuggers/start_debugger.h"

const struct prb_debugger_kind prb_debugger_gdb = {
	.program = "gdb",
	.plugin = "probing-gdb.py",
	.load = "source",
	.early = "-iex",
	.quiet = "-q",
};

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	return prb_debugger_run(&prb_debugger_gdb, cli, settings);
}

const struct prb_command prb_command_gdb = {
	.rank = 150,
	.name = "gdb",
	.aliases = {},
	.summary = "Start gdb with commands for Python",
	.description = "Starts gdb on a process or a core file and loads the plugin with "
		       "'probing backtrace', 'probing query' and more; 'help probing' in gdb "
		       "lists the commands. --print prints the line that loads the plugin, for a "
		       "gdb that is started in another way or for ~/.gdbinit.",
	.options = PRB_DEBUGGER_OPTIONS,
	.settings_size = sizeof(struct prb_debugger_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[PID|CORE]",
	.max_arguments = 1,
	.complete = PRB_COMPLETE_TARGET,
	.examples = (const struct prb_example[]){{"probing gdb 4242", "Attach to a process"},
						 {"probing gdb core.4242", "Open a core file"},
						 {"probing gdb --print >> ~/.gdbinit",
						  "Load the plugin in every gdb session"},
						 {}},
	.run = run,
};

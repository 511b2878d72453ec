/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The script `changes` as a command. */
#include "cli/commands/script/start_python.h"
#include "command/command.h"

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	(void)settings;
	if (cli->argument_count != 2)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "two states are compared"),
				      "for example 'probing diff before.snapshot after.snapshot', "
				      "or the process in place of the second one");
	return prb_script_start(
		(const char *const[]){"-f", "changes", cli->arguments[1], cli->arguments[0], NULL});
}

const struct prb_command prb_command_diff = {
	.rank = 146,
	.name = "diff",
	.summary = "Compare two states of a process",
	.description =
		"Shows which threads have moved, started and ended from one snapshot to the next, "
		"and which variables of calls that both have show another value. Objects of a "
		"thread that ran may have been freed, and others made where they were: these are "
		"named by address, and as the same only if the thread did not run. LATER may be "
		"the process as it is now. Needs python3, as 'script' does.",
	.options = (const struct prb_option[]){{}},
	.target_use = PRB_TARGET_NONE,
	.argument = "EARLIER LATER",
	.max_arguments = 2,
	.complete = PRB_COMPLETE_FILE,
	.examples =
		(const struct prb_example[]){
			{"probing diff before.snapshot after.snapshot", "Between two snapshots"},
			{"probing diff before.snapshot 4242", "Since a snapshot"},
			{}},
	.run = run,
};

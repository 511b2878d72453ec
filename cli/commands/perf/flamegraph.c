/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/show/performance.h"

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	return prb_performance_run(cli, settings, &prb_format_html);
}

const struct prb_command prb_command_flamegraph = {
	.rank = 66,
	.name = "flamegraph",
	.aliases = {"flame", "fg"},
	.summary = "Sample a process and write a flame graph",
	.description =
		"Samples as 'performance' does, and writes an interactive flame graph: one HTML "
		"file, which any browser shows without a network. Without -o it is called "
		"probing-PID-DATE.html, in the current folder; the command prints its name at the "
		"end.",
	.options = prb_performance_options,
	.settings_size = sizeof(struct prb_performance_settings),
	.target_use = PRB_TARGET_ONE,
	.takes_program = true,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 flamegraph", "Ten seconds of it"},
			{"probing 4242 flame --mode wall -o wall.html", "Also what waits"},
			{"probing 4242 fg -d 1m -o run.svg", "A minute, as a picture"},
			{"probing fg --diff before.profile after.profile", "What changed"},
			{"probing fg -- python3 train.py", "A program, until it ends"},
			{}},
	.run = run,
};

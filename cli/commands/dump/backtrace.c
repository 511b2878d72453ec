/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/command.h"
#include "cli/commands/dump/dump.h"

const struct prb_command prb_command_backtrace = {
	.rank = 20,
	.for_clients = true,
	.name = "backtrace",
	.aliases = {"bt", "b"},
	.summary = "Print the stack of the main thread",
	.description = "Shows the stack of the main thread, innermost call first. --tid selects "
		       "another thread, and --all prints all of them, as 'probing debug --dump' "
		       "does. Frames have the numbers that 'print --frame' and 'eval --frame' "
		       "take.",
	.options = (const struct prb_option[]){{"all", 'a', PRB_OPTION_FLAG, NULL, "All threads",
						PRB_COMPLETE_NOTHING,
						offsetof(struct prb_dump_settings, all)},
					       PRB_DUMP_OPTIONS,
					       {}},
	.settings_size = sizeof(struct prb_dump_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_TARGET,
	.examples = (const struct prb_example[]){{"probing 4242 backtrace", "Where is it?"},
						 {"probing 4242 bt --source --locals",
						  "With the source and the variables"},
						 {"probing 4242 bt --tid 4250", "Another thread"},
						 {}},
	.how = &(const struct prb_dump_how){.numbers = true, .main_thread = true},
	.run = prb_dump,
};

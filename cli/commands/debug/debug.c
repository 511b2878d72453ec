/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/command.h"
#include "cli/commands/debug/dap.h"
#include "cli/commands/debug/prompt.h"
#include "cli/commands/dump/dump.h"
#include "cli/commands/pause/pause.h"
#include "remote/serve/serve.h"

struct debug_settings {
	struct prb_dump_settings dump;
	struct prb_pause_settings pause;
	bool do_dump, do_pause;
	const char *dap, *debugpy, *relay;
};

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct debug_settings *s = settings;

	if (s->do_dump + s->do_pause + (s->dap != NULL) > 1)
		return prb_error_create(PRB_ERROR_USAGE,
					"--dump, --pause and --dap exclude each other");
	if (s->dap)
		return prb_dap(cli, s->dap, s->debugpy);
	if (s->do_pause) {
		struct prb_pause_settings how = s->pause;

		how.json = s->dump.json;
		return prb_pause_command(cli, &how);
	}
	if (!s->do_dump)
		return prb_debug_prompt(cli, s->pause.within, s->pause.max, s->relay);
	return prb_dump(cli, &s->dump);
}

const struct prb_command prb_command_debug = {
	.rank = 10,
	.for_clients = true,
	.name = "debug",
	.aliases = {"dbg", "d"},
	.summary = "Open a prompt like pdb's; or print all stacks, pause, start debugpy",
	.description =
		"Without --dump, --pause or --dap, pauses the target and reads commands "
		"like those of pdb: where, up, down, step, next, until, return, break, "
		"continue, p, list, interact; 'help' lists them. The target runs on, "
		"without breakpoints, when the prompt ends. A core file or a snapshot can "
		"be read in the same way.\n\n"
		"--dump shows every Python thread of the target, innermost call first: what the "
		"thread does or waits for, which thread holds the GIL, and function, file "
		"and line of every call.\n\n"
		"Sleeping threads are never stopped. A running thread is stopped for tens "
		"of microseconds while its stack is copied, and resumes before anything "
		"is decoded. Both kinds of stack are exact.\n\n"
		"Recursive calls and threads with identical stacks are folded; JSON is "
		"never folded.\n\n"
		"--pause pauses all Python threads until Ctrl-C, 'probing resume' or "
		"--max, and never longer than this command lives. A thread of the agent "
		"holds the GIL meanwhile, so C code without the GIL keeps running. --hard "
		"stops every thread by ptrace instead; the target can then be read, but "
		"no code can be evaluated.\n\n"
		"--dap imports debugpy in the target and makes it listen for an editor. "
		"The output is a launch.json for VS Code.",
	.options =
		(const struct prb_option[]){
			{"dump", 'd', PRB_OPTION_FLAG, NULL, "Print the stack of every thread",
			 PRB_COMPLETE_NOTHING, offsetof(struct debug_settings, do_dump),
			 .for_clients = true},
			{"pause", 'p', PRB_OPTION_FLAG, NULL,
			 "Pause all Python threads to inspect them", PRB_COMPLETE_NOTHING,
			 offsetof(struct debug_settings, do_pause), .for_clients = true},
			{"max", 0, PRB_OPTION_SECONDS, "TIME",
			 "Pause: resume after TIME (default: 10 minutes)", PRB_COMPLETE_NOTHING,
			 offsetof(struct debug_settings, pause.max), .for_clients = true},
			{"within", 0, PRB_OPTION_SECONDS, "TIME",
			 "Pause: give up if not paused within TIME (default: 2 s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct debug_settings, pause.within),
			 .for_clients = true},
			{"hard", 0, PRB_OPTION_FLAG, NULL,
			 "Pause: stop every thread by ptrace, even in C code", PRB_COMPLETE_NOTHING,
			 offsetof(struct debug_settings, pause.hard), .for_clients = true},
			{"address", 'a', PRB_OPTION_TEXT, "[ADDR]",
			 "Pause: accept remote clients; ADDR is " PRB_SERVE_ADDRESS,
			 PRB_COMPLETE_NOTHING, offsetof(struct debug_settings, pause.address),
			 PRB_SERVE_ADDRESS},
			{"once", 0, PRB_OPTION_FLAG, NULL,
			 "Pause: with --address, resume when the first client leaves",
			 PRB_COMPLETE_NOTHING, offsetof(struct debug_settings, pause.once)},
			PRB_DUMP_OPTIONS,
			{"dap", 0, PRB_OPTION_TEXT, "[ADDR]",
			 "Start debugpy in the target, for VS Code; ADDR is " PRB_DAP_ADDRESS,
			 PRB_COMPLETE_NOTHING, offsetof(struct debug_settings, dap),
			 PRB_DAP_ADDRESS, .for_clients = true},
			{"relay", 0, PRB_OPTION_TEXT, "MARK",
			 "Prompt: read lines that end with a NUL, and end answers with MARK",
			 PRB_COMPLETE_NOTHING, offsetof(struct debug_settings, relay),
			 .for_clients = true},
			{"debugpy", 0, PRB_OPTION_TEXT, "PATH", "Folder of the debugpy to use",
			 PRB_COMPLETE_FILE, offsetof(struct debug_settings, debugpy)},
			{}},
	.settings_size = sizeof(struct debug_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 debug --dump", "All threads of process 4242"},
			{"probing -t train.py d -d --locals",
			 "Find it by command line; show values"},
			{"probing core.4242 debug --dump --native",
			 "Stacks of a core file, with C frames"},
			{"probing 4242 debug", "Open a prompt, with breakpoints and steps"},
			{"probing 4242 debug --pause --max 30s", "Pause it for at most 30 seconds"},
			{"probing 4242 debug --dap > .vscode/launch.json",
			 "Step through it in an editor"},
			{"probing 4242 debug --dump --json | jq .threads[0]", "JSON for scripts"},
			{}},
	.run = run,
};

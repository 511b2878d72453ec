/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "cli/commands/debuggers/start_debugger.h"
#include "base/cleanup.h"

/*
 * Debian's LLDB looks for its Python module in a folder that another version owns: it then says "No
 * module named 'lldb.embedded_interpreter'". The module lies beside the program. What it needs in
 * turn lies with the system's modules, which are not searched if another Python of the same version
 * is first in $PATH.
 */
static void python_path(struct prb_str *ret)
{
	prb_auto_free char *program = prb_debugger_program(&prb_debugger_lldb);
	char *slash = program ? strrchr(program, '/') : NULL;
	glob_t found = {};

	if (!slash)
		return;
	*slash = '\0';
	prb_auto_free char *pattern =
		prb_format("%s/../lib/python3*/dist-packages/lldb/__init__.py", program);
	if (pattern && !glob(pattern, 0, NULL, &found) && found.gl_pathc) {
		const char *path = found.gl_pathv[found.gl_pathc - 1];

		prb_str_append(ret, path, strlen(path) - strlen("/lldb/__init__.py"));
		prb_str_printf(ret, ":%s/../../python3/dist-packages", program);
	}
	globfree(&found);
}

const struct prb_debugger_kind prb_debugger_lldb = {
	.program = "lldb",
	.newest = 40,
	.oldest = 11,
	.plugin = "probing_lldb.py",
	.load = "command script import",
	.words = true,
	.early = "-O",
	.python_path = python_path,
};

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	return prb_debugger_run(&prb_debugger_lldb, cli, settings);
}

const struct prb_command prb_command_lldb = {
	.rank = 160,
	.name = "lldb",
	.aliases = {},
	.summary = "Start LLDB with commands for Python",
	.description = "Starts LLDB on a process or a core file and loads the plugin with "
		       "'probing backtrace', 'probing query' and more; 'help probing' in LLDB "
		       "lists the commands. --print prints the line that loads the plugin, for "
		       "an LLDB that is started in another way or for ~/.lldbinit.",
	.options = PRB_DEBUGGER_OPTIONS,
	.settings_size = sizeof(struct prb_debugger_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[PID|CORE]",
	.max_arguments = 1,
	.complete = PRB_COMPLETE_TARGET,
	.examples = (const struct prb_example[]){{"probing lldb 4242", "Attach to a process"},
						 {"probing lldb core.4242", "Open a core file"},
						 {}},
	.run = run,
};

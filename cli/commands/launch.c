/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Becomes the program, whose Python finds our sitecustomize in $PYTHONPATH. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/package_place.h"
#include "command/command.h"
#include "command/exit.h"
#include "control/load.h"
#include "command/start.h"

enum { EXIT_NOT_RUNNABLE = 126, EXIT_NOT_FOUND = 127 };

struct launch_settings {
	bool recursive;
};

/** Finds the folder that is put first in $PYTHONPATH. */
static struct prb_error *find_hook(char **ret)
{
	prb_auto_free char *package = NULL;
	char folder[4096];

	prb_program_folder(folder, sizeof(folder));
	PRB_TRY(prb_package_find(folder, &package));
	*ret = prb_format("%s/launch", package);
	if (!*ret)
		return prb_error_nomem();
	if (access(*ret, R_OK | X_OK))
		return prb_error_hint(prb_error_os(errno, "cannot read %s", *ret),
				      "'make install' puts it there");
	if (strchr(*ret, ':'))
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "PYTHONPATH can hold no folder with a colon "
						       "in its name: %s",
						       *ret),
				      "install probing in another folder");
	return NULL;
}

/** "python3.12", wherever it is. */
static bool is_python(const char *word)
{
	const char *slash = strrchr(word, '/');

	return !strncmp(slash ? slash + 1 : word, "python", strlen("python"));
}

/** An option with which Python imports no sitecustomize of $PYTHONPATH, or 0. */
static char find_isolation(char *const *words)
{
	for (; *words && **words == '-' && strcmp(*words, "-") != 0; words++) {
		const char *end = *words + strcspn(*words, "cmWX");
		const char *found = strpbrk(*words, "IES");

		if ((*words)[1] == '-') {
			words += !strcmp(*words, "--check-hash-based-pycs") && words[1];
			continue;
		}
		if (found && found < end)
			return *found;
		if (*end == 'c' || *end == 'm')
			return 0;
		words += *end && !end[1] && words[1];
	}
	return 0;
}

static struct prb_error *set_variables(bool recursive)
{
	prb_auto_free char *agent = NULL, *real = NULL, *hook = NULL, *path = NULL, *says = NULL;
	const char *before = getenv("PYTHONPATH");

	PRB_TRY(prb_agent_library(&agent));
	PRB_TRY(find_hook(&hook));
	real = realpath(agent, NULL);
	if (!real)
		return prb_error_os(errno, "cannot read the agent's library %s", agent);
	says = prb_format("%d:%s", recursive ? 2 : 1, real);
	path = before && *before ? prb_format("%s:%s", hook, before) : prb_format("%s", hook);
	if (!says || !path || setenv("PROBING_LAUNCH", says, 1) || setenv("PYTHONPATH", path, 1))
		return prb_error_nomem();
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct launch_settings *s = settings;
	int reason;
	char option;

	if (!cli->program)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no program given"),
				      "for example 'probing launch -- python3 train.py'");
	option = is_python(*cli->program) ? find_isolation(cli->program + 1) : 0;
	if (option)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "Python's option -%c keeps it from loading "
						       "the agent at start",
						       option),
				      "leave it out, or start the program as usual and use "
				      "'probing PID inject'");
	PRB_TRY(set_variables(s->recursive));
	reason = prb_start_become_typed(cli->program);
	prb_exit_report(prb_error_os(reason, "cannot run '%.200s'", *cli->program));
	prb_exit_pass((reason == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE) << 8);
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s", "");
}

const struct prb_command prb_command_launch = {
	.rank = 85,
	.name = "launch",
	.summary = "Start a program with the agent in it",
	.description =
		"Becomes PROGRAM, whose Python loads the agent before its first line runs: 'eval', "
		"'repl' and 'pause' need no injection then. Nothing has to be installed in that "
		"Python, 3.4 or later. Process, terminal, signals, input and exit code are the "
		"program's own, and its environment and sys.path are as without the command. "
		"PROBING_PORT and the other variables of docs/configuration.md are obeyed.\n\n"
		"PROGRAM may also be a script or a launcher: each Python that it starts gets the "
		"agent; what those start does so with -r. Python's options -I, -E and -S prevent "
		"it and are refused.",
	.options = (const struct prb_option[]){{"recursive", 'r', PRB_OPTION_FLAG, NULL,
						"Child processes of Python get the agent, too",
						PRB_COMPLETE_NOTHING,
						offsetof(struct launch_settings, recursive)},
					       {}},
	.settings_size = sizeof(struct launch_settings),
	.takes_program = true,
	.examples = (const struct prb_example[]){{"probing launch -- python3 train.py --epochs 3",
						  "Start a program that can be evaluated in"},
						 {"probing launch -r -- torchrun train.py",
						  "Also its child processes"},
						 {}},
	.run = run,
};

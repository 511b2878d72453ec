/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Becomes a Python that runs a script with the package of this build. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/package_place.h"
#include "command/command.h"

enum { MAX_ARGUMENTS = 64 };

struct script_settings {
	const char *code;
	bool list;
};

/* In place of the current folder, from which nothing is imported. */
static const char start[] = "import sys; sys.path[0] = sys.argv[1]; "
			    "from probing._script import main; main(sys.argv[2:])";

/** The folder that the package is in, and the library that belongs to it, which may not exist. */
static struct prb_error *find_package(char **ret, char **ret_library)
{
	char folder[4096];

	prb_program_folder(folder, sizeof(folder));
	PRB_TRY(prb_package_find(folder, ret));
	*ret_library = prb_format("%s/libprobing.so", *ret);
	if (*ret_library && access(*ret_library, R_OK)) {
		free(*ret_library);
		*ret_library = prb_format("%s/libprobing.so", folder);
	}
	*strrchr(*ret, '/') = '\0';
	return *ret_library ? NULL : prb_error_nomem();
}

/* What to run, the target, and the arguments. */
static void put_words(const struct prb_cli *cli, const struct script_settings *s,
		      const char **words)
{
	size_t first = 0;

	*words++ = s->code ? "-c" : "-f";
	*words++ = s->code ? s->code : cli->arguments[first++];
	*words++ = cli->target			 ? cli->target
		   : first < cli->argument_count ? cli->arguments[first++]
						 : "";
	for (; first < cli->argument_count; first++)
		*words++ = cli->arguments[first];
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct script_settings *s = settings;
	prb_auto_free char *package = NULL, *library = NULL;
	const char *chosen = getenv("PYTHON"), *python = chosen && *chosen ? chosen : "python3";
	const char *words[MAX_ARGUMENTS + 8] = {python, "-c", start};
	size_t count = 3;

	if (!s->code && !s->list && !cli->argument_count)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no script given"),
				      "for example 'probing script stuck.py 4242'; --list shows "
				      "those that come with it");
	PRB_TRY(find_package(&package, &library));
	words[count++] = package;
	if (s->list)
		words[count++] = "-l";
	else
		put_words(cli, s, words + count);
	if (!access(library, R_OK))
		setenv("PROBING_LIBRARY", library, 0);
	execvp(python, (char **)words);
	return prb_error_hint(prb_error_os(errno, "cannot start %s", python),
			      "scripts need Python 3.6 or later; $PYTHON names one");
}

const struct prb_command prb_command_script = {
	.rank = 145,
	.name = "script",
	.summary = "Run a Python script over a target",
	.description =
		"Runs FILE with the package 'probing', and with 'p', the target, in it: threads, "
		"frames and values as Python objects, read from outside without running code of "
		"the target. The words behind FILE are the target, unless -t names it, and the "
		"script's own arguments; '--' goes before those that begin with a dash. FILE may "
		"be the name of a script that comes with it: --list shows them.\n\n"
		"Python is the python3 in $PATH, or what $PYTHON names, 3.6 or later. The exit "
		"code is the script's; 1 after an exception.",
	.options =
		(const struct prb_option[]){
			{"code", 'c', PRB_OPTION_TEXT, "CODE", "Run this code instead of a file",
			 PRB_COMPLETE_NOTHING, offsetof(struct script_settings, code)},
			{"list", 'l', PRB_OPTION_FLAG, NULL, "Show the scripts that come with it",
			 PRB_COMPLETE_NOTHING, offsetof(struct script_settings, list)},
			{}},
	.settings_size = sizeof(struct script_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "FILE [TARGET] [ARGUMENT…]",
	.max_arguments = MAX_ARGUMENTS,
	.complete = PRB_COMPLETE_FILE,
	.examples =
		(const struct prb_example[]){
			{"probing script stuck.py 4242", "Run a file over a process"},
			{"probing script deadlocks 4242", "Run an included script"},
			{"probing 4242 script -c 'print(p.threads())'", "Run one line"},
			{}},
	.run = run,
};

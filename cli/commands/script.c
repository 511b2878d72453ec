/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Becomes a Python that runs a script with the package of this build. */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "cli/common/command.h"

enum { MAX_ARGUMENTS = 64 };

struct script_settings {
	const char *code;
	bool list;
};

/* In place of the current folder, from which nothing is imported. */
static const char start[] = "import sys; sys.path[0] = sys.argv[1]; "
			    "from probing._script import main; main(sys.argv[2:])";

static struct prb_error *find_package(char **ret, char **ret_library)
{
	static const char *const places[] = {"/../package", "/../share/probing/python",
					     "/../lib/python3*/*-packages"}; /* the wheel's */
	char folder[4096];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	char *slash;

	folder[PRB_MAX(length, 0)] = '\0';
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	*ret_library = prb_format("%s/libprobing.so", folder);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(places); i++) {
		prb_auto_free char *path = prb_format("%s%s/probing/_script.py", folder, places[i]);
		glob_t found;

		if (!path || !*ret_library || glob(path, GLOB_NOCHECK, NULL, &found))
			return prb_error_nomem();
		*ret = realpath(found.gl_pathv[0], NULL);
		globfree(&found);
		if (!*ret)
			continue;
		(*ret)[strlen(*ret) - strlen("/probing/_script.py")] = '\0';
		return NULL;
	}
	return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
					       "the Python package is not installed beside "
					       "probing"),
			      "'make install' puts it there");
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
			{"probing script deadlocks 4242", "Run one that comes with it"},
			{"probing 4242 script -c 'print(p.threads())'", "Run one line"},
			{}},
	.run = run,
};

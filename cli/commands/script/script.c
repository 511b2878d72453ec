/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Becomes a Python that runs a script with the package of this build. */
#include <string.h>

#include "cli/commands/script/start_python.h"
#include "command/command.h"

enum { MAX_ARGUMENTS = 64 };

struct script_settings {
	const char *code;
	struct prb_texts scripts;
	bool list, entry_points;
};

/** True if the only word is what to run, and not the target of a prompt. */
static bool is_file(const char *word)
{
	const char *end = strrchr(word, '.');

	return (end && !strcmp(end, ".py")) || prb_script_is_ours(word);
}

/* Puts the script, the target and the arguments. */
static void put_words(const struct prb_cli *cli, const struct script_settings *s,
		      const char **words)
{
	size_t first = 0;
	bool prompt = !s->code &&
		      (!cli->argument_count || (!cli->target && cli->argument_count == 1 &&
						!s->scripts.count && !is_file(cli->arguments[0])));

	*words++ = s->code ? "-c" : prompt ? "-i" : "-f";
	if (!prompt)
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
	const char *words[MAX_ARGUMENTS + 2 * PRB_MAX_TEXTS + 8] = {};
	size_t count = 0;

	for (size_t i = 0; i < s->scripts.count; i++) {
		words[count++] = "--script";
		words[count++] = s->scripts.items[i];
	}
	if (s->entry_points)
		words[count++] = "--entry-points";
	if (!s->code && !s->list && !cli->argument_count && !cli->target)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "no script and no target given"),
			"for example 'probing script stuck.py 4242', or 'probing script 4242' for "
			"a prompt; --list shows those that come with it");
	if (s->list)
		words[count++] = "-l";
	else
		put_words(cli, s, words + count);
	return prb_script_start(words);
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
		"be the name of a script that comes with it: --list shows them. Without a FILE, a "
		"prompt reads lines of Python, with completion from the target.\n\n"
		"The files *.py in ~/.config/probing are loaded first, if they and the folder "
		"belong "
		"to you and no one else may write them. They may add commands, tables and "
		"texts.\n\n"
		"Python is the python3 in $PATH, or what $PYTHON names, 3.6 or later. The exit "
		"code is the script's; 1 after an exception.",
	.options =
		(const struct prb_option[]){
			{"code", 'c', PRB_OPTION_TEXT, "CODE", "Run this code instead of a file",
			 PRB_COMPLETE_NOTHING, offsetof(struct script_settings, code)},
			{"script", 's', PRB_OPTION_TEXTS, "FILE",
			 "Load this file first, which may add commands and tables",
			 PRB_COMPLETE_FILE, offsetof(struct script_settings, scripts)},
			{"entry-points", 0, PRB_OPTION_FLAG, NULL,
			 "Load what installed packages offer in the entry points \"probing\"",
			 PRB_COMPLETE_NOTHING, offsetof(struct script_settings, entry_points)},
			{"list", 'l', PRB_OPTION_FLAG, NULL,
			 "Show the scripts that come with it, and commands of extensions",
			 PRB_COMPLETE_NOTHING, offsetof(struct script_settings, list)},
			{}},
	.settings_size = sizeof(struct script_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[FILE] [TARGET] [ARGUMENT…]",
	.max_arguments = MAX_ARGUMENTS,
	.complete = PRB_COMPLETE_FILE,
	.examples =
		(const struct prb_example[]){
			{"probing script stuck.py 4242", "Run a file over a process"},
			{"probing script deadlocks 4242", "Run an included script"},
			{"probing 4242 script -c 'print(p.threads())'", "Run one line"},
			{"probing script 4242", "Open a prompt"},
			{}},
	.run = run,
};

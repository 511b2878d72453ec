/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/command.h"

#include <string.h>

#include "command/options.h"
#include "base/checked.h"
#include "base/str.h"
#include "base/words.h"

/* build/command/commands.inc is written by build-aux/gen-registry: an X() for each command. */
#define X(name) extern const struct prb_command prb_command_##name;
#include "command/commands.inc"
#undef X

#define X(name) &prb_command_##name,
const struct prb_command *const prb_commands[] = {
#include "command/commands.inc"
	NULL,
};
#undef X

const struct prb_option prb_global_options[] = {
	{"target", 't', PRB_OPTION_TEXTS, "TARGET",
	 "Pid, core file, snapshot, name, /regex/, host:port or ssh://host/PID",
	 PRB_COMPLETE_TARGET, offsetof(struct prb_global_settings, targets)},
	{"pid", 'p', PRB_OPTION_NUMBER, "PID", "The target is the process PID",
	 PRB_COMPLETE_PROCESS, offsetof(struct prb_global_settings, pid)},
	{"exe", 0, PRB_OPTION_TEXT, "PATH", "Executable of a core file", PRB_COMPLETE_FILE,
	 offsetof(struct prb_global_settings, places.exe)},
	{"sysroot", 0, PRB_OPTION_TEXT, "DIR",
	 "Folder that holds the files of a core file under their original paths", PRB_COMPLETE_FILE,
	 offsetof(struct prb_global_settings, places.sysroot)},
	{"library-path", 0, PRB_OPTION_TEXT, "DIRS",
	 "Folders with the libraries of a core file, separated by ':'", PRB_COMPLETE_FILE,
	 offsetof(struct prb_global_settings, places.library_path)},
	{"token-file", 0, PRB_OPTION_TEXT, "FILE", "File with the token of a served process",
	 PRB_COMPLETE_FILE, offsetof(struct prb_global_settings, token_file)},
	{"verbose", 'v', PRB_OPTION_COUNT, NULL, "Log to stderr; -vv and -vvv log more",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_global_settings, verbose)},
	{"help", 'h', PRB_OPTION_FLAG, NULL, "Show help and exit", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_global_settings, help)},
	{"version", 'V', PRB_OPTION_FLAG, NULL, "Show the version and exit", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_global_settings, version)},
	{},
};

const struct prb_option prb_hidden_options[] = {
	{"man", 0, PRB_OPTION_FLAG, NULL, "Print the man page and exit", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_global_settings, manual)},
	{},
};

/* A command without a target needs no options of processes, cores or tokens. */
bool prb_command_takes(const struct prb_command *command, const struct prb_option *option)
{
	static const char *const always[] = {"verbose", "help", "version"};
	static const char *const elsewhere[] = {"target", "token-file"};
	static const char *const of_cores[] = {"exe", "sysroot", "library-path"};

	for (size_t i = 0; command->only_processes && i < PRB_ARRAY_SIZE(of_cores); i++)
		if (!strcmp(option->name, of_cores[i]))
			return false;
	if (command->target_use)
		return true;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(always); i++)
		if (!strcmp(option->name, always[i]))
			return true;
	for (size_t i = 0; command->runs_elsewhere && i < PRB_ARRAY_SIZE(elsewhere); i++)
		if (!strcmp(option->name, elsewhere[i]))
			return true;
	return false;
}

const struct prb_command *prb_command_find(const char *name)
{
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		if (!strcmp((*c)->name, name))
			return *c;
		for (const char *const *alias = (*c)->aliases; *alias; alias++)
			if (!strcmp(*alias, name))
				return *c;
	}
	return NULL;
}

static bool resembles(const char *name, const struct prb_command *command)
{
	if (prb_word_resembles(name, command->name))
		return true;
	for (const char *const *alias = command->aliases; *alias; alias++)
		if (prb_word_resembles(name, *alias))
			return true;
	return false;
}

/** Names from other programs, or from later versions. */
static const struct {
	const char *name;
	bool later; /**< there is no such thing in this version */
	const char *hint;
} foreign[] = {
	{"stack", false,
	 "'probing PID backtrace' shows the main thread, 'probing PID dump' all threads"},
	{"stacks", false, "'probing PID dump' shows the stacks of all threads"},
	{"threads", false, "'probing PID dump' shows all threads"},
	{"attach", false,
	 "no need to attach: 'probing PID dump' shows its stacks, 'probing PID repl' opens a "
	 "prompt in it, 'probing PID debug --dap' connects an editor"},
	{"version", false, "'probing --version' shows it"},
	{"man", false, "'probing --man' prints the manual page"},
	{"ps", false, "'probing list' lists the Python processes"},
	{"exec", false, "'probing PID eval CODE' runs code"},
	{"run", false, "'probing PID eval CODE' runs code"},
	{"perf", true, NULL},
	{"performance", true, NULL},
	{"cluster", true, NULL},
};

static size_t find_foreign(const char *name)
{
	size_t i = 0;

	while (i < PRB_ARRAY_SIZE(foreign) && strcmp(foreign[i].name, name) != 0)
		i++;
	return i;
}

bool prb_command_is_foreign(const char *name)
{
	return find_foreign(name) < PRB_ARRAY_SIZE(foreign);
}

struct prb_error *prb_command_unknown(const char *name)
{
	size_t known =
		prb_word_resembles(name, "version") ? find_foreign("version") : find_foreign(name);
	bool later = known < PRB_ARRAY_SIZE(foreign) && foreign[known].later;
	struct prb_error *err = prb_error_create(PRB_ERROR_USAGE, "there is no command '%.100s'%s",
						 name, later ? " in this version" : "");
	prb_auto_str struct prb_str near = {};

	if (known < PRB_ARRAY_SIZE(foreign) && foreign[known].hint)
		return prb_error_hint(err, "%s", foreign[known].hint);
	for (const struct prb_command *const *c = prb_commands; *c; c++)
		if (resembles(name, *c))
			prb_str_printf(&near, "%s'%s'", near.length ? " or " : "", (*c)->name);
	if (near.length)
		return prb_error_hint(err, "did you mean %s?", prb_str_text(&near));
	return prb_error_hint(err, "'probing --help' lists the commands");
}

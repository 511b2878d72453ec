/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands.h"

#include <string.h>

#include "cli/options.h"
#include "dwarf/base/str.h"
#include "dwarf/base/words.h"

/* One a line, so that adding one changes one line. */
/* clang-format off */
const struct prb_command *const prb_commands[] = {
	&prb_command_debug,
	&prb_command_backtrace,
	&prb_command_list,
	&prb_command_query,
	&prb_command_tables,
	&prb_command_snapshot,
	&prb_command_inject,
	&prb_command_eval,
	&prb_command_repl,
	&prb_command_resume,
	&prb_command_step,
	&prb_command_agent,
	&prb_command_eject,
	&prb_command_gdb,
	&prb_command_lldb,
	&prb_command_completion,
	&prb_command_help,
	NULL,
};
/* clang-format on */

const struct prb_option prb_global_options[] = {
	{"target", 't', PRB_OPTION_TEXTS, "TARGET",
	 "Pid, core file, snapshot, name, /regex/, host:port or ssh://host/PID",
	 PRB_COMPLETE_TARGET, offsetof(struct prb_global_settings, targets)},
	{"pid", 'p', PRB_OPTION_NUMBER, "PID", "The target is the process PID",
	 PRB_COMPLETE_PROCESS, offsetof(struct prb_global_settings, pid)},
	{"exe", 0, PRB_OPTION_TEXT, "PATH", "Executable that a core file was made by",
	 PRB_COMPLETE_FILE, offsetof(struct prb_global_settings, places.exe)},
	{"sysroot", 0, PRB_OPTION_TEXT, "DIR", "Where the files of a core file lie, by their paths",
	 PRB_COMPLETE_FILE, offsetof(struct prb_global_settings, places.sysroot)},
	{"library-path", 0, PRB_OPTION_TEXT, "DIRS",
	 "Where the libraries of a core file lie: folders divided by ':'", PRB_COMPLETE_FILE,
	 offsetof(struct prb_global_settings, places.library_path)},
	{"token-file", 0, PRB_OPTION_TEXT, "FILE",
	 "Where the token of a served process is, without $PROBING_AUTH_TOKEN", PRB_COMPLETE_FILE,
	 offsetof(struct prb_global_settings, token_file)},
	{"verbose", 'v', PRB_OPTION_COUNT, NULL,
	 "Log what is done to stderr; twice and thrice: more", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_global_settings, verbose)},
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

struct prb_error *prb_command_unknown(const char *name)
{
	struct prb_error *err =
		prb_error_create(PRB_ERROR_USAGE, "there is no command '%.100s'", name);
	prb_auto_str struct prb_str near = {};

	for (const struct prb_command *const *c = prb_commands; *c; c++)
		if (resembles(name, *c))
			prb_str_printf(&near, "%s'%s'", near.length ? " or " : "", (*c)->name);
	if (near.length)
		return prb_error_hint(err, "did you mean %s?", prb_str_text(&near));
	return prb_error_hint(err, "'probing --help' lists the commands");
}

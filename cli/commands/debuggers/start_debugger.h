/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Starts a debugger with our plugin loaded, for `probing gdb` and `probing lldb`.
 */
#ifndef PRB_CLI_COMMANDS_DEBUGGERS_START_DEBUGGER_H
#define PRB_CLI_COMMANDS_DEBUGGERS_START_DEBUGGER_H

#include "command/command.h"
#include "base/str.h"

struct prb_debugger_settings {
	bool print;
};

struct prb_debugger_kind {
	const char *program; /**< "gdb" */
	int newest, oldest;  /**< versions that may be part of its name: "lldb-14"; or 0 */
	const char *plugin;  /**< the file that it loads */
	const char *load;    /**< its command for that, before the file's path, */
	bool words;	     /**< which ends at a space that is not escaped */
	const char *early;   /**< its option for a command that is run before all else */
	const char *quiet;   /**< its option against the banner, or NULL */
	/** Where its own Python module is, if it would not find it; appends nothing if it would. */
	void (*python_path)(struct prb_str *ret);
};

#define PRB_DEBUGGER_OPTIONS                                                  \
	(const struct prb_option[])                                           \
	{                                                                     \
		{"print",                                                     \
		 0,                                                           \
		 PRB_OPTION_FLAG,                                             \
		 NULL,                                                        \
		 "Print the line that loads the plugin, for a start-up file", \
		 PRB_COMPLETE_NOTHING,                                        \
		 offsetof(struct prb_debugger_settings, print)},              \
		{                                                             \
		}                                                             \
	}

extern const struct prb_debugger_kind prb_debugger_gdb, prb_debugger_lldb;

/** The real path of the debugger's program in $PATH, for the caller to free; NULL if none is. The
 * newest one of a version if there is none without. */
char *prb_debugger_program(const struct prb_debugger_kind *kind);

/** The path of the plugin, installed or in the source folder, for the caller to free. */
struct prb_error *prb_debugger_plugin(const struct prb_debugger_kind *kind,
				      char **ret) PRB_MUST_CHECK;

/** Becomes the debugger; returns only if it cannot. */
struct prb_error *prb_debugger_run(const struct prb_debugger_kind *kind, const struct prb_cli *cli,
				   const struct prb_debugger_settings *settings) PRB_MUST_CHECK;

#endif

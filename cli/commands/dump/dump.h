/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The body of the commands that print a dump (`dump`, `backtrace`, `debug --dump`), and their
 * options. They differ by a struct prb_dump_how, and by options of their own.
 */
#ifndef PRB_CLI_COMMANDS_DUMP_DUMP_H
#define PRB_CLI_COMMANDS_DUMP_DUMP_H

#include <stdbool.h>
#include <stddef.h>

#include "command/command.h"
#include "base/error.h"
#include "cli/commands/script/extensions.h"
#include "values/limits.h"

/** Must be the first member of the settings of a command that uses PRB_DUMP_OPTIONS. */
struct prb_dump_settings {
	int tid; /**< 0: not given */
	bool locals, all_names, source;
	const char *native; /**< NULL: none; "": C and C++ frames; "all" */
	struct prb_value_limits values;
	bool nonblocking, freeze;
	bool subprocesses;
	bool no_tasks;
	bool no_fold, full_paths, full_names;
	bool json;
	struct prb_texts scripts;
	bool all; /**< every thread, for a command that otherwise prints the main thread's stack
		     only */
};

/** The differences between the commands: `how` of their structs. NULL is the same as {}. */
struct prb_dump_how {
	bool numbers;	  /**< the frames are numbered */
	bool main_thread; /**< without --all and --tid, only the main thread's stack is printed */
};

#define PRB_DUMP_FLAG(name, member, help) PRB_DUMP_SHORT(name, 0, member, help)

#define PRB_DUMP_SHORT(name, letter, member, help)                                      \
	{                                                                               \
		name, letter, PRB_OPTION_FLAG, NULL, help, PRB_COMPLETE_NOTHING,        \
			offsetof(struct prb_dump_settings, member), .for_clients = true \
	}

#define PRB_DUMP_NUMBER(name, member, help)                                             \
	{                                                                               \
		name, 0, PRB_OPTION_NUMBER, "N", help, PRB_COMPLETE_NOTHING,            \
			offsetof(struct prb_dump_settings, member), .for_clients = true \
	}

/** Rows of an option table. */
#define PRB_DUMP_OPTIONS                                                                          \
	{"tid",                                                                                   \
	 0,                                                                                       \
	 PRB_OPTION_NUMBER,                                                                       \
	 "TID",                                                                                   \
	 "Only the thread TID",                                                                   \
	 PRB_COMPLETE_NOTHING,                                                                    \
	 offsetof(struct prb_dump_settings, tid),                                                 \
	 .for_clients = true},                                                                    \
		PRB_DUMP_SHORT("locals", 'l', locals, "Show arguments and local variables"),      \
		PRB_DUMP_FLAG("all-names", all_names,                                             \
			      "With --locals: modules, functions and classes of modules, too"),   \
		PRB_DUMP_NUMBER("depth", values.depth,                                            \
				"Values: levels of instances with attributes"),                   \
		PRB_DUMP_NUMBER("max-value", values.max_value, "Values: characters of a text"),   \
		PRB_DUMP_NUMBER("max-items", values.max_items,                                    \
				"Values: items and attributes of each"),                          \
		PRB_DUMP_FLAG("secrets", values.secrets,                                          \
			      "Values: what the class of an object hides, too"),                  \
		{"native",                                                                        \
		 'n',                                                                             \
		 PRB_OPTION_TEXT,                                                                 \
		 "[=all]",                                                                        \
		 "Merge C and C++ frames into the stacks; all: the interpreter's own, too",       \
		 PRB_COMPLETE_NOTHING,                                                            \
		 offsetof(struct prb_dump_settings, native),                                      \
		 "",                                                                              \
		 .for_clients = true},                                                            \
		PRB_DUMP_SHORT("source", 's', source,                                             \
			       "Show source, the running expression underlined"),                 \
		PRB_DUMP_FLAG("nonblocking", nonblocking,                                         \
			      "Stop no thread, not even for microseconds"),                       \
		PRB_DUMP_FLAG("freeze", freeze,                                                   \
			      "Stop all that run at one instant; with --native all"),             \
		PRB_DUMP_FLAG("subprocesses", subprocesses, "Dump the Python children as well"),  \
		PRB_DUMP_FLAG("no-tasks", no_tasks, "Without the tasks and greenlets that wait"), \
		PRB_DUMP_FLAG("no-fold", no_fold,                                                 \
			      "Show every call of a recursion and every thread"),                 \
		PRB_DUMP_FLAG("full-paths", full_paths, "Show whole paths of files"),             \
		PRB_DUMP_FLAG("full-names", full_names, "Show complete names of C++ functions"),  \
		PRB_EXTENSION_OPTION(struct prb_dump_settings, scripts),                          \
		PRB_DUMP_FLAG("json", json, "Print JSON")

/** Prints the dump of the target of @p cli. @p settings begin with a struct prb_dump_settings. */
struct prb_error *prb_dump(const struct prb_cli *cli, const void *settings) PRB_MUST_CHECK;

#endif

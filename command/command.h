/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A command of the command line, as data.
 *
 * Each command is one const struct in its own file. Its own data (names, texts, its option table)
 * drives everything: parsing, `--help`, `probing help`, shell completion, the man page and the
 * tests. To add one, write cli/commands/NAME.c with the struct: the build finds it.
 *
 * Texts are written for people: summaries and option helps start with a capital letter, are one
 * line and have no full stop.
 */
#ifndef PRB_COMMAND_COMMAND_H
#define PRB_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/target.h"

enum prb_option_kind {
	PRB_OPTION_FLAG,    /**< bool: set to true */
	PRB_OPTION_COUNT,   /**< unsigned: incremented each time it is given */
	PRB_OPTION_TEXT,    /**< const char *: the value, borrowed from the arguments */
	PRB_OPTION_TEXTS,   /**< struct prb_texts: each value that is given */
	PRB_OPTION_NUMBER,  /**< int: the value, a number from 1 to INT_MAX */
	PRB_OPTION_SECONDS, /**< double: a duration above 0: "5", "5s", "500ms", "2m", "1h" */
};

/** Kinds of candidates that a shell offers for an option's value or an argument. */
enum prb_completion {
	PRB_COMPLETE_NOTHING,
	PRB_COMPLETE_FILE,
	PRB_COMPLETE_PROCESS, /**< pids of Python processes */
	PRB_COMPLETE_TARGET,  /**< both */
	PRB_COMPLETE_COMMAND, /**< names of our commands */
	PRB_COMPLETE_SHELL,   /**< names of shells we write completion for */
	PRB_COMPLETE_FORMAT,  /**< formats of results */
	PRB_COMPLETE_TABLE,   /**< tables of SQL */
	PRB_COMPLETE_THREAD,  /**< threads that run code */
	PRB_COMPLETE_REQUEST, /**< what the agent can be asked for */
	PRB_COMPLETE_VALUE,   /**< names of values in the target */
};

/** More values of one option than this are refused. A bundle that is served has as many ranks. */
enum { PRB_MAX_TEXTS = 4096 };

/** The values of an option that may be given more than once, borrowed from the arguments. */
struct prb_texts {
	const char *items[PRB_MAX_TEXTS];
	size_t count;
};

/** How a command uses targets. */
enum prb_target_use {
	PRB_TARGET_NONE, /**< there is none */
	PRB_TARGET_ONE,	 /**< needs one; the positional argument is one */
	PRB_TARGET_ANY,	 /**< any number; the positional arguments are something else */
};

/** One option. A table of them ends with an entry whose `name` is NULL. */
struct prb_option {
	const char *name; /**< long form, without dashes; never NULL but in the last entry */
	char letter;	  /**< short form, or 0 */
	enum prb_option_kind kind;
	const char *value; /**< what stands for the value in helps ("PID"); NULL if it has none */
	const char *help;
	enum prb_completion complete;
	uint16_t place; /**< offset of the variable in the settings it is parsed into */

	/**
	 * The default of an optional value; NULL if the option needs one. If this is an address,
	 * the value may be the next word too, if that has a colon. Long form only.
	 */
	const char *otherwise;

	/** A client elsewhere may give it to a served process. Files that it names are then the
	 * client's. */
	bool for_clients;
};

/** One invocation, apart from the settings of its command. */
struct prb_cli {
	const char *target;	       /**< as the user gave it, or NULL */
	struct prb_texts targets;      /**< all of them; `target` is the first */
	struct prb_core_places places; /**< of the files of a core */
	const char *token_file;	       /**< of a remote target, or NULL */
	unsigned verbose;	       /**< how often it was said */
	const struct prb_command *command;
	char **program;	  /**< its words, ending with NULL, if one is to be started; or NULL */
	char **arguments; /**< positional arguments, borrowed; ends with NULL */
	size_t argument_count;
};

struct prb_example {
	const char *command, *does;
};

struct prb_command {
	unsigned rank;		 /**< its place in the help: the lowest comes first */
	bool for_clients;	 /**< a client elsewhere may run it for a served process */
	const char *client_word; /**< … if this is its first argument; NULL: whatever that is */
	const char *name;
	const char *aliases[4]; /**< ends with NULL */
	const char *summary;
	const char *description; /**< paragraphs, divided by empty lines; wrapped when shown */
	const struct prb_option *options;
	size_t settings_size; /**< of the command's own struct, which `place` points into */
	enum prb_target_use target_use;

	/** Its targets are no core files: options about the files of those are refused. */
	bool only_processes;

	/** Of PRB_TARGET_NONE: a target that is served elsewhere is where the command runs. */
	bool runs_elsewhere;

	/** Words after "--" are a program to be started: instead of a target, or, of
	 * PRB_TARGET_NONE, what the command is about. */
	bool takes_program;

	const char *argument; /**< what stands for the positional argument in helps, or NULL */
	size_t max_arguments; /**< 0 for PRB_TARGET_ONE */
	enum prb_completion complete;

	/** Ends with an entry that is all NULL. Or NULL, but not for commands that need a target.
	 */
	const struct prb_example *examples;

	/** What distinguishes commands with the same `run`, which knows its type. Or NULL. */
	const void *how;

	/** Does it; @p settings is zeroed and filled from the options. Results go to stdout. */
	struct prb_error *(*run)(const struct prb_cli *cli, const void *settings);
};

/** All commands in the order of the help; ends with NULL. */
extern const struct prb_command *const prb_commands[];

/** The options that every command knows, parsed into struct prb_global_settings. */
struct prb_global_settings {
	struct prb_texts targets;
	int pid;
	struct prb_core_places places;
	const char *token_file;
	unsigned verbose;
	bool help, version, manual;
};
extern const struct prb_option prb_global_options[];

/** Options that a person need not see: known, but in no help, page or completion. */
extern const struct prb_option prb_hidden_options[];

/** True if the global option @p option applies to this command. */
bool prb_command_takes(const struct prb_command *command, const struct prb_option *option);

/** A command by name or alias, or NULL. */
const struct prb_command *prb_command_find(const char *name);

/** True if the word is a command of another program or version. */
bool prb_command_is_foreign(const char *name);

/** The error for a word that is no command, with the names that are nearest to it. */
struct prb_error *prb_command_unknown(const char *name) PRB_MUST_CHECK;

#endif

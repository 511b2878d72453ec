/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Extensions of the user (texts of objects, words for waits, tables, rules) in commands that
 * are C.
 *
 * Extensions are Python, so they run in a Python of their own: a child of ours, which loads them,
 * reads the target by itself, and answers our questions on a socket (package/probing/_answers.py).
 * It is started only if one of their files makes what the command could show, and it ends with us.
 */
#ifndef PRB_CLI_COMMANDS_SCRIPT_EXTENSIONS_H
#define PRB_CLI_COMMANDS_SCRIPT_EXTENSIONS_H

#include "command/command.h"
#include "target/custom.h"

/** Parts of extensions that a command can use. */
enum prb_extension_use {
	PRB_EXTENSION_PRINTERS = 1 << 0,
	PRB_EXTENSION_WAITS = 1 << 1,
	PRB_EXTENSION_TABLES = 1 << 2,
	PRB_EXTENSION_RULES = 1 << 3,
};

/** The row of an option table for `--script`; @p type has a struct prb_texts @p member. */
#define PRB_EXTENSION_OPTION(type, member)                                                         \
	{                                                                                          \
		"script", 0, PRB_OPTION_TEXTS, "FILE",                                             \
			"Load this file of Python: texts, words for waits, tables, rules of your " \
			"own",                                                                     \
			PRB_COMPLETE_FILE, offsetof(type, member)                                  \
	}

/**
 * Loads the extensions if they may be of @p use for @p target, the only one of the command. *ret is
 * NULL if they are not; else it is valid until this is called again. An extension that fails is
 * reported on stderr by Python, and left out.
 */
struct prb_error *prb_extensions_load(const struct prb_cli *cli, const struct prb_texts *scripts,
				      unsigned use, const struct prb_target *target,
				      const struct prb_custom **ret) PRB_MUST_CHECK;

#endif

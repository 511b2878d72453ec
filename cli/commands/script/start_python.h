/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Becoming a Python that runs the package, for `script` and for commands of extensions.
 *
 * Threading: single-threaded. Errors: returned only if no Python could be started.
 */
#ifndef PRB_CLI_COMMANDS_SCRIPT_START_PYTHON_H
#define PRB_CLI_COMMANDS_SCRIPT_START_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "command/command.h"

enum { PRB_SCRIPT_WORDS = 400 };

/** Runs package/probing/_script.py with these words, which end with NULL, in our place. */
struct prb_error *prb_script_start(const char *const *words) PRB_MUST_CHECK;

/**
 * True if one of the files @p scripts (or NULL), or of the user's folder of extensions, has the
 * text in it, or a named one cannot be read, which Python will say.
 */
bool prb_script_mentioned(const struct prb_texts *scripts, const char *wanted);

/** True if it is the name of a script that comes with the package. */
bool prb_script_is_ours(const char *name);

/**
 * Runs what the user has as a command of that name: the program probing-NAME in $PATH, or what
 * looks like one in the files of ~/.config/probing. @p words are all words of the command line, the
 * one at @p at is the name. Returns NULL if there is none.
 */
struct prb_error *prb_script_external(char **words, size_t count, size_t at) PRB_MUST_CHECK;

#endif

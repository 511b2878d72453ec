/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Parses command lines by option tables.
 *
 * Forms: `-d`, `-dv`, `-p 42`, `-p42`, `--pid 42`, `--pid=42`; `--` ends the options. Nothing is
 * copied: values and positional words point into the arguments. Errors are PRB_ERROR_USAGE.
 */
#ifndef PRB_COMMAND_OPTIONS_H
#define PRB_COMMAND_OPTIONS_H

#include <stddef.h>

#include "command/command.h"
#include "base/error.h"

/** True for an option whose value may be the word after it: not for "--native[=all]". */
bool prb_option_takes_word(const struct prb_option *option);

/** A table and the struct its options are stored in. */
struct prb_option_scope {
	const struct prb_option *options;
	void *settings;
};

/** Scopes to look in, first match wins; the last entry has no options (NULL). */
struct prb_option_scopes {
	const struct prb_option_scope *list;
	const char *command; /**< the command's name, for messages: "probing debug" */
};

/**
 * Parses @p words and moves the positional ones, in their order, to the front of @p words;
 * *positional is their count.
 */
struct prb_error *prb_options_parse(const struct prb_option_scopes *scopes, char **words,
				    size_t count, size_t *positional) PRB_MUST_CHECK;

/**
 * The index of the first positional word from @p start on, as far as the options of @p scopes alone
 * determine it; @p count if there is none.
 */
size_t prb_options_skip(const struct prb_option_scopes *scopes, char **words, size_t count,
			size_t start);

#endif

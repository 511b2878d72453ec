/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Builds the argument list of a program to be started. */
#ifndef PRB_COMMAND_WORDS_H
#define PRB_COMMAND_WORDS_H

#include <stdbool.h>

#include "command/command.h"
#include "base/error.h"
#include "base/vec.h"

/** Starts as {}. */
struct prb_words {
	PRB_VEC(char *) list; /**< owned; prb_words_end() puts a NULL behind the last */
};
void prb_words_deinit(struct prb_words *words);
#define prb_auto_words __attribute__((cleanup(prb_words_deinit)))

/**
 * Appends a word. One that begins with what was printed (a format that begins with '%') may have
 * been chosen by somebody else: it may not begin with a dash, unless "--" has ended the options.
 * So names are refused, and have no other effect, that would be options of the program.
 */
struct prb_error *prb_words_add(struct prb_words *words, const char *format, ...) PRB_MUST_CHECK
	PRB_PRINTF(2, 3);

/**
 * Appends words with options among them, up to a NULL: those that stand in this program, that its
 * user typed, or that another list has accepted.
 */
struct prb_error *prb_words_add_ours(struct prb_words *words,
				     const char *const *list) PRB_MUST_CHECK;

/** Appends the options that are set in @p settings, each as one word that says it whole. */
struct prb_error *prb_words_add_options(struct prb_words *words, const struct prb_option *options,
					const void *settings) PRB_MUST_CHECK;

/** Appends one of them, which is set. */
struct prb_error *prb_words_add_option(struct prb_words *words, const struct prb_option *option,
				       const void *settings) PRB_MUST_CHECK;

/** True if the option was given. */
bool prb_option_is_set(const struct prb_option *option, const void *settings);

/** The words for exec(): borrowed, with a NULL at the end. */
struct prb_error *prb_words_end(struct prb_words *words, char ***ret) PRB_MUST_CHECK;

#endif

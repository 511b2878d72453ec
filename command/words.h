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
 * Appends a word. If the format begins with '%', the beginning of the word may be untrusted:
 * PRB_ERROR_USAGE if it begins with a dash, unless an earlier word is "--". A name is so never an
 * option of the program.
 */
struct prb_error *prb_words_add(struct prb_words *words, const char *format, ...) PRB_MUST_CHECK
	PRB_PRINTF(2, 3);

/**
 * Appends the words of a list that ends with NULL. They may be options, so they have to be
 * constants of this program, typed by its user, or accepted by another list before.
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

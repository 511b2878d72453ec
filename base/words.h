/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which name may have been meant by a word that is none.
 */
#ifndef PRB_BASE_WORDS_H
#define PRB_BASE_WORDS_H

#include <stdbool.h>

/** Longest word that is compared, bytes. */
enum { PRB_MAX_WORD = 64 };

/** How unlike two words are: letters to insert, drop, change or swap with their neighbour. */
unsigned prb_word_distance(const char *a, const char *b);

/** True if @p word may be a misspelling of @p name. */
bool prb_word_resembles(const char *word, const char *name);

#endif

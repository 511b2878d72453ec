/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Checks which commands a server may run for clients, and builds their argument lists. */
#ifndef PRB_REMOTE_SERVE_WORDS_H
#define PRB_REMOTE_SERVE_WORDS_H

#include <stddef.h>

#include "command/words.h"
#include "base/error.h"

/**
 * Understands the words of a client, without -t, and gives those of the program to run:
 * "probing -t TARGET COMMAND …". What is not in the list is PRB_ERROR_USAGE: all that would read or
 * write files here, or has another target.
 */
struct prb_error *prb_serve_words(const char *const *words, size_t count, const char *target,
				  struct prb_words *ret) PRB_MUST_CHECK;

#endif

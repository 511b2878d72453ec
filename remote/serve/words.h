/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Checks which commands a server may run for clients, and builds their argument lists. */
#ifndef PRB_REMOTE_SERVE_WORDS_H
#define PRB_REMOTE_SERVE_WORDS_H

#include <stddef.h>

#include "command/words.h"
#include "base/error.h"

/**
 * Parses the words of a client, without -t, and returns the words of the program to run: "probing
 * -t TARGET COMMAND …". PRB_ERROR_USAGE for commands that are not in the list: those would read or
 * write files here, or have another target.
 */
struct prb_error *prb_serve_words(const char *const *words, size_t count, const char *target,
				  struct prb_words *ret) PRB_MUST_CHECK;

#endif

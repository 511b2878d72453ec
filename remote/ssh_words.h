/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The command line of ssh for a probing on another machine. Any thread. */
#ifndef PRB_REMOTE_SSH_WORDS_H
#define PRB_REMOTE_SSH_WORDS_H

#include "command/words.h"

/** Appends @p word in quotes, so that any shell at the other end takes it for one, as it is. */
void prb_ssh_quote(struct prb_str *s, const char *word);

/** Appends the words of an ssh that gives @p line to the shell of @p host, and asks for nothing. */
struct prb_error *prb_ssh_line(const char *host, const char *line,
			       struct prb_words *ret) PRB_MUST_CHECK;

/**
 * Appends the words of an ssh that runs "probing COMMAND…" at @p host and asks the user nothing.
 * @p command ends with NULL. The program is "probing" there, or $PROBING_REMOTE_PROGRAM.
 */
struct prb_error *prb_ssh_words(const char *host, const char *const *command,
				struct prb_words *ret) PRB_MUST_CHECK;

#endif

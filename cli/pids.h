/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Several pids on a command line, as $(pgrep -f train.py) gives them for a program whose data
 * loader has workers: they mean the parent.
 */
#ifndef PRB_CLI_PIDS_H
#define PRB_CLI_PIDS_H

#include <stddef.h>

#include "base/error.h"

enum { PRB_PID_TEXT = 16 };

/**
 * Puts the parent's pid, in @p text, in the place of several pids that name the target: words of
 * their own, or one word with blanks or line ends between them. *count words become fewer. Says so
 * on stderr. PRB_ERROR_USAGE if none is the parent of the others.
 */
struct prb_error *prb_pids_join(char **words, size_t *count,
				char text[PRB_PID_TEXT]) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Building blocks of help texts, independent of commands, for all of our programs.
 */
#ifndef PRB_COMMAND_HELP_PARTS_H
#define PRB_COMMAND_HELP_PARTS_H

#include "command/command.h"
#include "base/str.h"

enum { PRB_HELP_COLUMN = 22 }; /**< where what a word means begins, or further right */

/** One line: a word and, from @p column on, what it means. */
void prb_help_row(struct prb_str *s, const char *left, const char *right, size_t column);

/** A title and the list under it, which ends with NULLs; nothing if @p list is NULL. */
void prb_help_examples(struct prb_str *s, const char *title, const struct prb_example *list);
void prb_help_option(struct prb_str *s, const struct prb_option *option);
void prb_help_options(struct prb_str *s, const char *title, const struct prb_option *options);
void prb_help_exit_codes(struct prb_str *s);

#endif

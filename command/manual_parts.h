/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Building blocks of man pages in man(7) format, independent of commands, for all of our
 * programs.
 */
#ifndef PRB_COMMAND_MANUAL_PARTS_H
#define PRB_COMMAND_MANUAL_PARTS_H

#include "command/command.h"
#include "base/str.h"

/** Appends text so that roff shows it as it is. */
void prb_manual_text(struct prb_str *s, const char *text);

void prb_manual_item(struct prb_str *s, const char *term, const char *meaning);

/** A section of items; the list ends with NULLs. */
void prb_manual_items(struct prb_str *s, const char *title, const struct prb_example *list);
void prb_manual_options(struct prb_str *s, const struct prb_option *options);
void prb_manual_exit_codes(struct prb_str *s);

#endif

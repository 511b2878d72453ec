/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Help texts, generated from the command tables.
 */
#ifndef PRB_CLI_HELP_H
#define PRB_CLI_HELP_H

#include "command/command.h"
#include "base/str.h"

/** The help of one command, or of the whole program if @p command is NULL. */
void prb_help_text(const struct prb_command *command, struct prb_str *ret);

/** "probing [TARGET] debug [OPTIONS]". */
void prb_help_usage(const struct prb_command *command, struct prb_str *ret);

/** The name of a command with its aliases: "debug, dbg, d". */
void prb_help_names(const struct prb_command *command, struct prb_str *ret);

/** The program in one sentence, and in paragraphs. */
extern const char prb_help_summary[], prb_help_description[];

/** The forms a target can have, `command` being the form; ends with NULLs. */
extern const struct prb_example prb_help_targets[];

/** The environment variables we look at; ends with NULLs. */
extern const struct prb_example prb_help_environment[];

#endif

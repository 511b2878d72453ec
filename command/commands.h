/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Commands that other files refer to. prb_commands lists all commands.
 */
#ifndef PRB_COMMAND_COMMANDS_H
#define PRB_COMMAND_COMMANDS_H

#include "command/command.h"

extern const struct prb_command prb_command_debug;
extern const struct prb_command prb_command_query;
extern const struct prb_command prb_command_snapshot;
extern const struct prb_command prb_command_eval;
extern const struct prb_command prb_command_repl;
extern const struct prb_command prb_command_dap;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Commands that other files refer to. prb_commands lists all commands.
 */
#ifndef PRB_CLI_COMMON_COMMANDS_H
#define PRB_CLI_COMMON_COMMANDS_H

#include "cli/common/command.h"

extern const struct prb_command prb_command_debug;
extern const struct prb_command prb_command_query;
extern const struct prb_command prb_command_snapshot;
extern const struct prb_command prb_command_eval;
extern const struct prb_command prb_command_repl;

#endif

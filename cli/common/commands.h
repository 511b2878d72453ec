/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The commands, each defined in the file of its name.
 */
#ifndef PRB_CLI_COMMON_COMMANDS_H
#define PRB_CLI_COMMON_COMMANDS_H

#include "cli/common/command.h"

extern const struct prb_command prb_command_debug;
extern const struct prb_command prb_command_backtrace;
extern const struct prb_command prb_command_dump;
extern const struct prb_command prb_command_list;
extern const struct prb_command prb_command_query;
extern const struct prb_command prb_command_tables;
extern const struct prb_command prb_command_inject;
extern const struct prb_command prb_command_resume;
extern const struct prb_command prb_command_step;
extern const struct prb_command prb_command_snapshot;
extern const struct prb_command prb_command_eval;
extern const struct prb_command prb_command_repl;
extern const struct prb_command prb_command_agent;
extern const struct prb_command prb_command_eject;
extern const struct prb_command prb_command_gdb;
extern const struct prb_command prb_command_lldb;
extern const struct prb_command prb_command_completion;
extern const struct prb_command prb_command_help;

#endif

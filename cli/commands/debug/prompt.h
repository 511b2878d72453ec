/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `probing debug` without an option: a prompt like pdb's. */
#ifndef PRB_CLI_COMMANDS_DEBUG_PROMPT_H
#define PRB_CLI_COMMANDS_DEBUG_PROMPT_H

#include "command/command.h"

/**
 * Opens a prompt for the target: lines come from the terminal, or from stdin. @p mark: from a
 * client elsewhere, each ended by a NUL, and each answer is ended by the mark; NULL: from here.
 */
struct prb_error *prb_debug_prompt(const struct prb_cli *cli, double within, double max,
				   const char *mark) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `memory --snapshot-gpu`: the history of torch's GPU allocator, which torch records itself.
 */
#ifndef PRB_CLI_COMMANDS_MEMORY_HISTORY_HISTORY_H
#define PRB_CLI_COMMANDS_MEMORY_HISTORY_HISTORY_H

#include "cli/commands/memory/report/memory.h"

/**
 * Has torch record for a while, writes what it has to the file of the settings, and appends what
 * was allocated when most was, by line. Loads the agent. PRB_ERROR_UNSUPPORTED says why there is
 * none.
 */
struct prb_error *prb_memory_history(struct prb_target *target, const struct prb_memory_settings *s,
				     struct prb_str *out) PRB_MUST_CHECK;

#endif

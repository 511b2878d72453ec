/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `probing debug --dap`: debugpy in the target, for editors that speak DAP. */
#ifndef PRB_CLI_COMMANDS_DEBUG_DAP_H
#define PRB_CLI_COMMANDS_DEBUG_DAP_H

#include "command/command.h"
#include "base/error.h"

/** Where debugpy listens if nothing else is said: the port that editors suggest. */
#define PRB_DAP_ADDRESS "127.0.0.1:5678"

/**
 * Has the target of @p cli import debugpy and listen on @p address, and prints a launch.json for
 * it. @p debugpy is the folder that holds the package, or the package; NULL: the target's own.
 */
struct prb_error *prb_dap(const struct prb_cli *cli, const char *address,
			  const char *debugpy) PRB_MUST_CHECK;

#endif

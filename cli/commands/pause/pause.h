/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `probing debug --pause`. */
#ifndef PRB_CLI_COMMANDS_PAUSE_PAUSE_H
#define PRB_CLI_COMMANDS_PAUSE_PAUSE_H

#include <stdbool.h>

#include "command/command.h"
#include "base/error.h"

struct prb_pause_settings {
	double max, within; /**< seconds; 0: not given */
	bool hard, once;
	const char *address; /**< to be served at meanwhile, or NULL */
	bool json;
};

/** Pauses the target of @p cli until it is asked to resume, or a deadline. */
struct prb_error *prb_pause_command(const struct prb_cli *cli,
				    const struct prb_pause_settings *settings) PRB_MUST_CHECK;

/**
 * Even when we are stopped ourselves, the kernel ends us @p seconds from now and some, and with us
 * the pause; 0: not any more.
 */
struct prb_error *prb_pause_limit_own_life(double seconds) PRB_MUST_CHECK;

#endif

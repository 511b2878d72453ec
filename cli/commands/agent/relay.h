/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `probing agent relay`: passes the agent's protocol through our stdin and stdout. */
#ifndef PRB_CLI_COMMANDS_AGENT_RELAY_H
#define PRB_CLI_COMMANDS_AGENT_RELAY_H

#include <stdbool.h>

#include "base/error.h"
#include "target/target.h"

/**
 * Passes bytes between our stdin and stdout and the agent of @p t, until one side ends; loads it
 * first if there is none and @p may_load. The bytes are passed on unread.
 */
struct prb_error *prb_agent_relay(struct prb_target *t, bool may_load) PRB_MUST_CHECK;

#endif

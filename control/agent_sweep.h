/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Removes stale sockets of agents whose processes were killed. */
#ifndef PRB_CONTROL_AGENT_SWEEP_H
#define PRB_CONTROL_AGENT_SWEEP_H

#include "target/target.h"

/**
 * Removes what nobody listens at from @p folder, a path as @p t sees it, if the folder is that
 * user's alone. Nobody's agent is woken for it: a socket that some process of the network has
 * bound, and one younger than a minute, is left alone. What cannot be done is left undone.
 */
void prb_agent_sweep(struct prb_target *t, const char *folder, uid_t uid);

#endif

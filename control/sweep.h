/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Removes stale sockets of agents whose processes were killed. */
#ifndef PRB_CONTROL_SWEEP_H
#define PRB_CONTROL_SWEEP_H

#include "target/target.h"

/**
 * Removes sockets at which no process listens from @p folder, a path as @p t sees it, if the folder
 * is that user's alone. Wakes no agent: leaves a socket alone that a process of the network has
 * bound, or that is younger than a minute. Looks at 512 names at most, and ignores errors.
 */
void prb_agent_sweep(struct prb_target *t, const char *folder, uid_t uid);

#endif

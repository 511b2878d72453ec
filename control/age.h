/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Since when the agent is in a process. To load it a thread of the process was interrupted,
 * so that its wait began anew: to the kernel it has slept since then only.
 *
 * Reads /proc alone, and the threads' names: no more for a process without an agent than one file
 * for each thread. Threading: that of the target.
 */
#ifndef PRB_CONTROL_AGE_H
#define PRB_CONTROL_AGE_H

#include <stdbool.h>

#include "target/target.h"

/** Seconds since the thread was started that serves the agent's socket; negative: none is there. */
double prb_agent_age(struct prb_target *t);

/**
 * True if a thread that has slept for @p idle seconds may sleep on in a wait that was interrupted
 * when the agent came, @p age seconds ago. Never for a process that is as young as its agent.
 */
bool prb_agent_interrupted(struct prb_target *t, double age, double idle);

#endif

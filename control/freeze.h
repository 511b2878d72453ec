/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Stops the target's other threads on behalf of the agent, before it runs code in a pause:
 * the agent cannot trace its own process (docs/protocol.md).
 *
 * Threading: one thread.
 */
#ifndef PRB_CONTROL_FREEZE_H
#define PRB_CONTROL_FREEZE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/protocol.h"
#include "control/stop_threads.h"

struct prb_agent;
struct prb_target;

struct prb_freeze {
	struct prb_target *target; /**< borrowed */
	struct prb_gil_locks gil;
	struct prb_agent *agent;	    /**< borrowed */
	struct prb_stopped_threads stopped; /**< belongs to freeze.c */
};

/** Stops the threads as @p frame asks for, and writes the answer to the agent. */
void prb_freeze_stop(struct prb_freeze *f, const struct prb_wire_frame *frame,
		     uint8_t at[PRB_WIRE_FROZEN_SIZE]);

/** Lets the threads run; may be called at any time, and again. */
void prb_freeze_thaw(struct prb_freeze *f);

#endif

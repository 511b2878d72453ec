/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What who pauses a program does for its agent, which cannot: it stops threads, by ptrace,
 * while the agent waits for the GIL and before it runs code (docs/protocol.md).
 *
 * Threading: one thread.
 */
#ifndef PRB_CONTROL_FREEZE_H
#define PRB_CONTROL_FREEZE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/protocol.h"
#include "control/still.h"
#include "base/error.h"
#include "target/target.h"
#include "dump/tasks.h"

struct prb_agent;

struct prb_freeze {
	struct prb_target *target; /**< borrowed */
	struct prb_still_gil gil;
	struct prb_agent *agent; /**< borrowed */
	bool agent_requests;	 /**< PRB_WIRE_CAN_REQUEST */
	int timer; /**< readable when prb_freeze_look() is to be called; -1: none yet */

	/* The rest belongs to freeze.c. */
	struct prb_still still;
	struct prb_tasks tasks;
	double wanted; /* since when; 0: it is not */
	long delay_ns; /* until the next look */
};

/** From here on there is a timer. */
struct prb_error *prb_freeze_open(struct prb_freeze *f) PRB_MUST_CHECK;
void prb_freeze_deinit(struct prb_freeze *f);

/**
 * Before the agent is asked for a pause: whether it can have who has the GIL give it away. Then
 * what is to follow that request was written.
 */
bool prb_freeze_prepare(struct prb_freeze *f, uint8_t at[PRB_WIRE_HOLD_SIZE]);

/** The agent waits for the GIL, and prb_freeze_look() is to be called now. */
void prb_freeze_want(struct prb_freeze *f);

/**
 * Whether the agent may be able to have who has it give it away; or other threads wait for it, too,
 * and it is known where and which thread has it. Then a request to hold its mutex was written.
 */
bool prb_freeze_look(struct prb_freeze *f, uint8_t at[PRB_WIRE_HOLD_SIZE]);

/** Stops threads as the agent asked for, and writes the answer. */
void prb_freeze_stop(struct prb_freeze *f, enum prb_wire_freeze which,
		     uint8_t at[PRB_WIRE_FROZEN_SIZE]);

/** Lets them go, and ends the wait for the GIL; may be called at any time, and again. */
void prb_freeze_thaw(struct prb_freeze *f);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What who pauses a program does for its agent, which cannot: it stops threads, by ptrace,
 * before the agent takes the GIL and before it runs code (docs/protocol.md).
 *
 * Threading: one thread.
 */
#ifndef PRB_CLI_FREEZE_H
#define PRB_CLI_FREEZE_H

#include <stdint.h>

#include "agent/protocol.h"
#include "cli/still.h"
#include "dwarf/base/error.h"
#include "dwarf/target.h"
#include "injector/tasks.h"

struct prb_freeze {
	struct prb_target *target; /**< borrowed */
	struct prb_still_gil gil;
	int limit; /**< readable when those that wait for the GIL have stood for long; or -1 */

	/* The rest belongs to freeze.c. */
	struct prb_still still;
	struct prb_tasks tasks;
};

/**
 * Writes where threads wait for the GIL into the last part of a request to pause, if there are any,
 * and they can be told from the one that has it; else 0.
 */
struct prb_error *
prb_freeze_offer(struct prb_freeze *f,
		 uint8_t at[PRB_WIRE_PAUSE_GIL_SIZE - PRB_WIRE_PAUSE_SIZE]) PRB_MUST_CHECK;

/** Stops threads as the agent asked for, and writes the answer. */
void prb_freeze_stop(struct prb_freeze *f, enum prb_wire_freeze which,
		     uint8_t at[PRB_WIRE_FROZEN_SIZE]);

/** Lets them go; may be called at any time, and again. */
void prb_freeze_thaw(struct prb_freeze *f);

void prb_freeze_deinit(struct prb_freeze *f);

#endif

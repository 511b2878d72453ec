/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The stacks of greenlets, each of one instant.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_DUMP_GREENLET_STACKS_H
#define PRB_DUMP_GREENLET_STACKS_H

#include "base/error.h"
#include "dump/model/dump.h"
#include "target/target.h"
#include "values/greenlets.h"

/**
 * Reads the stack of each of @p greenlets, through @p mem where the target does not run. Of a
 * process that runs, threads that run are stopped for a moment where that is needed and @p mode
 * allows it. What cannot be read is in `error` of the greenlet.
 */
struct prb_error *prb_greenlet_stacks(struct prb_target *target, enum prb_dump_mode mode,
				      struct prb_python *py, struct prb_mem *mem,
				      struct prb_greenlets *greenlets) PRB_MUST_CHECK;

#endif

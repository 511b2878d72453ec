/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The memory of a process over time, as its agent has noted it in memory_usage.
 *
 * Threading: as the target's. Rows are as little to be trusted as the process that wrote them.
 */
#ifndef PRB_RINGS_MEMORY_ROWS_H
#define PRB_RINGS_MEMORY_ROWS_H

#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"

struct prb_memory_row {
	double time;   /**< seconds since the epoch */
	double bytes;  /**< resident */
	double blocks; /**< of Python's allocator; negative: not known */
};

struct prb_memory_rows {
	PRB_VEC(struct prb_memory_row) list; /**< in the order of their times */
};

/** The last rows, a few ten thousand at most. Rings that cannot be read are left out. */
struct prb_error *prb_memory_rows_read(struct prb_target *target,
				       struct prb_memory_rows *ret) PRB_MUST_CHECK;
void prb_memory_rows_deinit(struct prb_memory_rows *rows);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The calls of a function that a process has recorded (`probing trace --calls`): when each
 * ended and how long it took, from python.trace_event.
 *
 * Threading: as the target's.
 */
#ifndef PRB_RINGS_CALL_ROWS_H
#define PRB_RINGS_CALL_ROWS_H

#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"

struct prb_call_row {
	pid_t tid;	    /**< of the thread that it ended on */
	int64_t begin, end; /**< nanoseconds since the epoch */
};

struct prb_call_rows {
	PRB_VEC(struct prb_call_row) list; /**< the longest first */
};

/**
 * All calls of functions with that @p name, or that end in a dot and it; a million at most. Rings
 * that cannot be read are left out.
 */
struct prb_error *prb_call_rows_read(struct prb_target *target, const char *name,
				     struct prb_call_rows *ret) PRB_MUST_CHECK;
void prb_call_rows_deinit(struct prb_call_rows *rows);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The calls of a function that a process has recorded (`probing trace --calls`): when each
 * ended and how long it took, from python.trace_event.
 *
 * Threading: as the target's.
 */
#ifndef PRB_RINGS_CALL_ROWS_H
#define PRB_RINGS_CALL_ROWS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/vec.h"
#include "target/target.h"

struct prb_call_row {
	const char
		*name; /**< the function's, without "<locals>."; before Python 3.11 its last part */
	int64_t span;  /**< its number; -1: none */
	pid_t tid;     /**< of the thread that it ended on, as we see it; 0: unknown */
	int64_t begin, end; /**< nanoseconds since the epoch */
	bool late; /**< recorded when it was over (`--slower`), or its values are left out */
};

struct prb_call_rows {
	PRB_VEC(struct prb_call_row) list; /**< the longest first */
	struct prb_pool *names;
};

/**
 * True if a function's full name is @p name, or ends in a dot and it. @p name may be a pattern, as
 * that of `trace --calls` may.
 */
bool prb_call_is_of(const char *full, const char *name);

/** All calls of such functions; a million at most. Rings that cannot be read are left out. */
struct prb_error *prb_call_rows_read(struct prb_target *target, const char *name,
				     struct prb_call_rows *ret) PRB_MUST_CHECK;
void prb_call_rows_deinit(struct prb_call_rows *rows);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Recordings that keep only what was around a condition (`perf --when`).
 *
 * About once a second the condition, SQL over a table of the threads (docs/profiling.md), is asked.
 * Where it holds, a window begins or goes on. Chunks outside of all windows leave the file.
 *
 * Threading: the thread that writes, but for prb_store_when_create(). Internal to
 * profile/store/write/.
 */
#ifndef PRB_PROFILE_STORE_WRITE_CONDITION_H
#define PRB_PROFILE_STORE_WRITE_CONDITION_H

#include "base/str.h"
#include "profile/store/write/batch.h"
#include "profile/store/write/store.h"

struct prb_store_when;

/** PRB_ERROR_USAGE if @p condition, an expression or a SELECT, cannot be understood. */
struct prb_error *prb_store_when_create(const char *condition, double around,
					prb_store_steps_fn *steps,
					struct prb_store_when **ret) PRB_MUST_CHECK;
void prb_store_when_destroy(struct prb_store_when *when);

/** Once for each batch: asks. An error of the condition ends the recording. */
struct prb_error *prb_store_when_ask(struct prb_store_when *when,
				     const struct prb_batch *batch) PRB_MUST_CHECK;

/** Appends SQL that notes the window, and removes what is in none and cannot be in a later one. */
void prb_store_when_sql(const struct prb_store_when *when, const struct prb_batch *batch,
			int64_t part_ns, struct prb_str *sql);

#endif

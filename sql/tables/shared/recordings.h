/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the tables of recordings: the recording, read once for a statement. */
#ifndef PRB_SQL_TABLES_SHARED_RECORDINGS_H
#define PRB_SQL_TABLES_SHARED_RECORDINGS_H

#include "profile/store/load/load.h"
#include "profile/recording/report.h"
#include "sql/spec/table.h"

/** The recording of the scan's target; PRB_ERROR_UNSUPPORTED if that is something else. */
struct prb_error *prb_scan_recording(struct prb_scan *scan, struct prb_load **ret) PRB_MUST_CHECK;

/** As above, with its runs, in no order. */
struct prb_error *prb_scan_recording_runs(struct prb_scan *scan,
					  const struct prb_recording **ret) PRB_MUST_CHECK;

/** A function, or a line of one, by both weights. */
struct prb_recorded_row {
	uint32_t function;
	int32_t line;
	uint64_t samples;
	int64_t self[PRB_WEIGHTS], total[PRB_WEIGHTS];
};
struct prb_recorded_rows {
	PRB_VEC(struct prb_recorded_row) list; /**< the largest share of processors first */
};
struct prb_error *prb_recorded_rows_make(const struct prb_recording *recording, bool lines,
					 struct prb_recorded_rows *ret) PRB_MUST_CHECK;

/** "func" of a qualified name: what is behind its last dot. */
const char *prb_recorded_func(const struct prb_tree_function *function);

static inline double prb_milliseconds(int64_t ns)
{
	return (double)ns / 1e6;
}

/** Puts "holds" or "waits" of a run into the column @p gil, and what it waited for into @p waits;
 * nothing that is not known. */
void prb_put_recorded_wait(struct prb_scan *scan, unsigned gil, unsigned waits,
			   const struct prb_recording *recording, const struct prb_run *run);

#endif

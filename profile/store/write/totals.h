/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Sums of the runs by stack and state, for one part (a minute, at first) of a recording.
 *
 * The runs of a chunk are given again and again while it grows; only sums that have changed are
 * written.
 *
 * Threading: one thread at a time. Internal to profile/store/write/.
 */
#ifndef PRB_PROFILE_STORE_WRITE_TOTALS_H
#define PRB_PROFILE_STORE_WRITE_TOTALS_H

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/recording/recording.h"

struct prb_total_sums {
	uint64_t samples;
	int64_t cpu, wall, queue;
};

struct prb_total {
	uint32_t stack;
	enum prb_run_state state;
	struct prb_total_sums complete; /**< of chunks that are complete */
	struct prb_total_sums now;	/**< with the chunk that grows */
	struct prb_total_sums written;
};

struct prb_totals {
	PRB_VEC(struct prb_total) list;
	struct prb_number_map numbers; /**< by stack and state */
};

/** Sums up @p runs, which are all that the present chunk has so far. */
struct prb_error *prb_totals_set(struct prb_totals *totals, const struct prb_run *runs,
				 size_t count) PRB_MUST_CHECK;
/** The present chunk is complete. */
void prb_totals_cut(struct prb_totals *totals);
/** True if the sums differ from the written ones. */
bool prb_total_changed(const struct prb_total *total);
/** Another part begins. */
void prb_totals_clear(struct prb_totals *totals);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the time that passed in each function was: on a processor, waiting for one, asleep,
 * and what for.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_PROFILE_RECORDING_WALL_PARTS_H
#define PRB_PROFILE_RECORDING_WALL_PARTS_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "profile/recording/report.h"

struct prb_wall_part {
	uint32_t function; /**< the innermost one, as in rows of a report */
	int32_t line;
	enum prb_run_state state;
	uint32_t wait; /**< what it slept for; 0: it did not, or that is not known */
	int64_t wall;
};

struct prb_wall_parts {
	PRB_VEC(struct prb_wall_part) list; /**< a row's parts together, the longest first */
};

/** @p choice: which threads, and whether lines are told apart. */
struct prb_error *prb_wall_parts_make(const struct prb_recording *recording,
				      const struct prb_profile_choice *choice,
				      struct prb_wall_parts *ret) PRB_MUST_CHECK;
void prb_wall_parts_deinit(struct prb_wall_parts *parts);

/** The parts of a row, borrowed; none for a row without time of its own. */
const struct prb_wall_part *prb_wall_parts_of(const struct prb_wall_parts *parts,
					      const struct prb_report_row *row, size_t *ret_count);

/** Appends "on a processor", "an RLock, held by 4250 worker-0", …; as people read it, escaped. */
void prb_wall_part_text(const struct prb_recording *recording, const struct prb_wall_part *part,
			struct prb_str *s);

#endif

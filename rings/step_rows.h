/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The last training steps of a process, and what they were made of, as its agent has noted
 * them in python.torch_step_timing.
 *
 * Threading: as the target's. Rows are as little to be trusted as the process that wrote them.
 */
#ifndef PRB_RINGS_STEP_ROWS_H
#define PRB_RINGS_STEP_ROWS_H

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"

/** Parts of a step that something else than the model takes. */
enum prb_step_row_part {
	PRB_STEP_ROW_DATA,	    /**< in data loaders; without one, before the first module */
	PRB_STEP_ROW_COMMUNICATION, /**< in operations of torch.distributed */
	PRB_STEP_ROW_EVALUATION,    /**< in modules without gradients */
	PRB_STEP_ROW_CHECKPOINT,    /**< in torch.save() and its like */
	PRB_STEP_ROW_PARTS,
};

struct prb_step_row {
	double ended;			  /**< seconds since the epoch */
	double seconds;			  /**< its duration */
	double parts[PRB_STEP_ROW_PARTS]; /**< seconds, of its duration; 0 also if not known */
};

struct prb_step_rows {
	PRB_VEC(struct prb_step_row) list; /**< in the order of their ends */
};

/**
 * The last steps that ended after @p since (seconds since the epoch), some thousand at most. Rings
 * that cannot be read are left out. *ret is to be ended also after an error.
 */
struct prb_error *prb_step_rows_read(struct prb_target *target, double since,
				     struct prb_step_rows *ret) PRB_MUST_CHECK;
void prb_step_rows_deinit(struct prb_step_rows *rows);

#endif

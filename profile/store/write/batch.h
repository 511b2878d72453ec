/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A batch from the recorder to the writing thread: copies of new data.
 *
 * Strings are not copied: a recording's strings stay valid until its end.
 *
 * Threading: belongs to one thread at a time. Internal to profile/.
 */
#ifndef PRB_PROFILE_STORE_WRITE_BATCH_H
#define PRB_PROFILE_STORE_WRITE_BATCH_H

#include "base/error.h"
#include "profile/recording/recording.h"

/** How much of a recording was handed over. */
struct prb_batch_mark {
	size_t images, functions, frames, stacks, waits;
};

struct prb_batch {
	struct prb_batch_mark first; /**< numbers of the first ones below */
	PRB_VEC(struct prb_tree_image *) images;
	PRB_VEC(struct prb_tree_function) functions;
	PRB_VEC(struct prb_tree_frame) frames;
	PRB_VEC(struct prb_tree_stack) stacks;
	PRB_VEC(struct prb_profile_thread) threads; /**< all */
	PRB_VEC(struct prb_profile_wait) waits;
	PRB_VEC(struct prb_profile_process) others; /**< all */
	PRB_VEC(struct prb_run) runs;		    /**< of the chunk, all so far */
	size_t all_stacks, all_waits;
	uint32_t *renamed; /**< owned; by old number the new one of each stack, or NULL */
	size_t renamed_count;
	int64_t chunk;		    /**< its number */
	bool cut;		    /**< the chunk is complete */
	bool last;		    /**< so is the recording */
	struct prb_recording about; /**< without tree, threads, waits and runs */
};

/** Copies what is new since @p mark, which is moved on. */
struct prb_error *prb_batch_fill(struct prb_batch *batch, const struct prb_recording *recording,
				 struct prb_batch_mark *mark) PRB_MUST_CHECK;
void prb_batch_deinit(struct prb_batch *batch);

#endif

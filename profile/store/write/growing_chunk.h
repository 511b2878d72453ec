/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The chunks of a .profile file as they are written: exact while the file is small; when a
 * long recording grows too fast, with runs that are put together by steps of time.
 *
 * Threading: one thread at a time. Internal to profile/store/write/.
 */
#ifndef PRB_PROFILE_STORE_WRITE_GROWING_CHUNK_H
#define PRB_PROFILE_STORE_WRITE_GROWING_CHUNK_H

#include "profile/store/write/database.h"

/** The written part of a batch, to be noted once the transaction is over. */
struct prb_store_chunk {
	int64_t bytes; /**< of the complete chunk */
	bool complete; /**< no later batch changes it */
};

/** When the samples of a batch, which has some, begin. */
int64_t prb_store_chunk_begin(const struct prb_batch *batch);

/** Writes the samples of a batch, of which there are some; as often as the transaction fails. */
struct prb_error *prb_store_chunk_put(struct prb_store_file *file, const struct prb_batch *batch,
				      struct prb_store_chunk *ret) PRB_MUST_CHECK;

/** The transaction is over. */
void prb_store_chunk_written(struct prb_store_file *file, const struct prb_batch *batch,
			     const struct prb_store_chunk *chunk);

#endif

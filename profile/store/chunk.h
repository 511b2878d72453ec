/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs as bytes: the chunks that samples lie in in a .profile file.
 *
 * A chunk is one zstd frame. Decompressed it is one column after the other, each with a number for
 * every run: thread, stack, state, wait, samples, reads, begin, wall, cpu, queue, and the sum of
 * squares. docs/profile-format.md describes it. Times are counted in a unit of the chunk; rounding
 * errors are carried on to the next run of the thread, so that sums stay exact.
 *
 * Threading: any thread; nothing here keeps state. Decoding treats the bytes as hostile.
 */
#ifndef PRB_PROFILE_STORE_CHUNK_H
#define PRB_PROFILE_STORE_CHUNK_H

#include "base/error.h"
#include "base/str.h"
#include "profile/recording/recording.h"

/** No chunk has more runs. */
enum { PRB_CHUNK_MOST_RUNS = 1 << 20 };

/** The facts of a chunk besides its bytes. */
struct prb_chunk {
	size_t runs;
	int64_t begin; /**< ns from the start of the recording; times count from here */
	int64_t unit;  /**< ns, at least 1 */
	bool small;    /**< to be encoded small rather than fast */
	size_t threads, stacks, waits; /**< numbers of them in the runs are lower than these */
};

/** Appends the bytes of runs, of which there are `runs`. */
struct prb_error *prb_chunk_encode(const struct prb_chunk *chunk, const struct prb_run *runs,
				   struct prb_str *ret) PRB_MUST_CHECK;

/** Room for `runs` runs is at @p ret. PRB_ERROR_BAD_DATA says what is wrong with the bytes. */
struct prb_error *prb_chunk_decode(const struct prb_chunk *chunk, const void *data, size_t size,
				   struct prb_run *ret) PRB_MUST_CHECK;

#endif

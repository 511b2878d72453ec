/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs as bytes: the chunks that samples lie in in a .profile file.
 *
 * A chunk is one zstd frame, which says how long it is. Decompressed it is eleven columns, one
 * after the other, each with a number for every run, in the order in which the runs began within
 * each thread:
 *
 *     thread, stack, state    as in the tables of docs/profile-format.md
 *     wait                    twice its number in `waits`, 0 if not known; one more with the GIL
 *     samples                 all of them
 *     reads                   those that did not merely find that nothing had changed
 *     begin                   from the end of the thread's run before, in this chunk, or from
 *                             `begin_ns`; signed
 *     wall, cpu, runqueue     as in `totals`
 *     squares                 0: the sum of the squares of the samples' cpu weights is that of
 *                             cpu; 1: it follows, a little-endian 64-bit float, in ns squared
 *
 * Numbers are little-endian groups of seven bits, with the top bit set in all bytes but the last.
 * Signed ones are folded: 0, -1, 1, -2, ... are 0, 1, 2, 3, ... Times count in units of the chunk,
 * 1 ns, and after an hour a hundredth of the mean time between two samples, or a tenth where runs
 * are put together; rounding errors are carried on to the next run of the thread, so that sums stay
 * exact.
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

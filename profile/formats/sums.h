/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file All weights of the stacks of a thread, for formats without an order of time.
 *
 *     PRB_TRY(prb_sums_init(&sums, recording, lines));
 *     PRB_TRY(prb_sums_of_thread(&sums, thread));
 *     prb_vec_each (sum, &sums.list)
 *             … sum->cpu …
 *
 * Threading: one thread at a time. Errors: memory.
 */
#ifndef PRB_PROFILE_FORMATS_SUMS_H
#define PRB_PROFILE_FORMATS_SUMS_H

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/recording/order.h"
#include "profile/recording/recording.h"

/** What a thread did in one stack and state. */
struct prb_sum {
	uint32_t stack; /**< a representative (profile/recording/fold.h) */
	enum prb_run_state state;
	uint64_t samples;
	int64_t cpu, wall, queue;
};

struct prb_sums {
	const struct prb_recording *recording; /**< borrowed */
	uint32_t *folded;		       /**< the representative of each stack */
	struct prb_order order;
	struct prb_number_map known; /**< numbers in `list` by stack and state */
	PRB_VEC(struct prb_sum) list;
};

/** @p ret is freed by prb_sums_deinit() also after an error. */
struct prb_error *prb_sums_init(struct prb_sums *ret, const struct prb_recording *recording,
				bool lines) PRB_MUST_CHECK;
void prb_sums_deinit(struct prb_sums *sums);

/** Makes `list` that of @p thread. */
struct prb_error *prb_sums_of_thread(struct prb_sums *sums, uint32_t thread) PRB_MUST_CHECK;

#endif

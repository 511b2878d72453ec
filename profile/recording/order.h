/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The runs of each thread by themselves, in the order of time.
 *
 *     prb_auto_order struct prb_order order = {};
 *     PRB_TRY(prb_order_make(recording, &order));
 *     prb_order_each (number, &order, thread)
 *             … &recording->runs.items[*number] …
 *
 * Threading: any thread; the order is the caller's. Errors: memory.
 */
#ifndef PRB_PROFILE_RECORDING_ORDER_H
#define PRB_PROFILE_RECORDING_ORDER_H

#include "base/error.h"
#include "profile/recording/recording.h"

struct prb_order {
	uint32_t *runs; /**< numbers of all runs, thread by thread */
	size_t *begin;	/**< where each thread's runs begin; one more than there are threads */
};

struct prb_error *prb_order_make(const struct prb_recording *recording,
				 struct prb_order *ret) PRB_MUST_CHECK;
void prb_order_deinit(struct prb_order *order);
#define prb_auto_order __attribute__((cleanup(prb_order_deinit)))

#define prb_order_each(number, order, thread)                                 \
	for (const uint32_t *number = (order)->runs + (order)->begin[thread]; \
	     number < (order)->runs + (order)->begin[(thread) + 1]; number++)

#endif

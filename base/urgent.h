/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Priority and timer slack of the calling thread while threads of others are stopped for it.
 *
 * A stopped thread waits for us, also while we wait for a processor. We need little of one, so we
 * take the highest priority that the system grants, and sleep exactly as long as we ask for.
 *
 * Threading: each thread has its own priority and timer slack; begin and end on the same one.
 */
#ifndef PRB_BASE_URGENT_H
#define PRB_BASE_URGENT_H

#include <stdbool.h>

struct prb_urgent {
	int priority, slack; /**< as they were */
	bool raised;
};

/** Raises the priority where that is permitted. */
void prb_urgent_begin(struct prb_urgent *ret);

/** Restores what was there before. */
void prb_urgent_end(const struct prb_urgent *urgent);
#define prb_auto_urgent __attribute__((cleanup(prb_urgent_end)))

#endif

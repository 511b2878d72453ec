/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A table with a long history, read as one: the newest rows from its own ring, and those
 * before as least, mean and highest values of 10 rows, of 100 and so on, from the rings
 * "TABLE_per_10", "TABLE_per_100" … (agent/rings/history.h). Each row is in one of them.
 *
 * Threading: one thread at a time per target. Ownership: nothing is kept.
 */
#ifndef PRB_RINGS_HISTORY_H
#define PRB_RINGS_HISTORY_H

#include "base/error.h"
#include "rings/files.h"
#include "rings/ring.h"

enum { PRB_HISTORY_LEVELS = 5 }; /**< 0: the ring of the table itself */

/** The times of the rows of each level that count. */
struct prb_history {
	struct prb_ring_range levels[PRB_HISTORY_LEVELS];
};

/** The level of a ring of that table, or -1. */
int prb_history_level(const struct prb_ring_header *header, const char *schema, const char *name);

/** Finds which rows count in @p files, none of which was opened yet; rings that cannot be read are
 * left out. */
struct prb_error *prb_history_find(const struct prb_ring_files *files, const char *schema,
				   const char *name, struct prb_history *ret) PRB_MUST_CHECK;

#endif

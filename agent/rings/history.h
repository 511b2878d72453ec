/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Long histories: tables whose rows are also kept as the least, mean and highest values of
 * 10, 100, 1,000 and 10,000 rows, each in a ring of its own, "TABLE_per_10" and so on.
 * rings/history.h reads them as one table. Internal to agent/rings/.
 *
 * Threading: as probing_ring_append(). A row that is added while another one is, as a signal
 * handler may do, is left out of the sums.
 */
#ifndef PRB_AGENT_RINGS_HISTORY_H
#define PRB_AGENT_RINGS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/ring.h"
#include "agent/rings/write.h"

enum {
	PRBA_HISTORY_LEVELS = 4,
	PRBA_HISTORY_BASE = 10,	 /**< rows of a level that make one of the next */
	PRBA_HISTORY_CHUNKS = 8, /**< of a level's ring: 3,584 to 4,096 rows */
	PRBA_HISTORY_SHARE = 32, /**< no level's ring is larger than this part of max_memory */
};

struct prba_ring;
struct prba_history;

/**
 * The history of a ring with that header and columns; NULL: its table has none, or there is no
 * memory. The caller makes the rings of its levels. It is never freed.
 */
struct prba_history *prba_history_create(const struct prb_ring_header *header,
					 const struct prb_ring_column *columns);

/** The columns of a level's ring: how many. */
int prba_history_columns(const struct prba_history *history, const struct prb_ring_column *base,
			 struct prb_ring_column ret[PRB_RING_COLUMNS]);

/** @p ring: the handle for level @p level, the finest is 0; not positive: there is none. */
void prba_history_set(struct prba_history *history, unsigned level, intptr_t ring);

/** A row was appended to @p ring, whose history it is, by the process @p pid. */
void prba_history_add(struct prba_history *history, const struct prba_ring *ring, uint32_t pid,
		      int64_t time, const struct probing_cell *cells);

#endif

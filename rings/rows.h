/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file All rows that a process keeps in rings of one kind, in the order of each ring. A ring that
 * cannot be read is left out.
 *
 * Threading: as the target's. Rows are as little to be trusted as the process that wrote them.
 */
#ifndef PRB_RINGS_ROWS_H
#define PRB_RINGS_ROWS_H

#include <stdint.h>

#include "base/error.h"
#include "rings/ring.h"
#include "target/target.h"

struct prb_ring_visit {
	/** Finds the columns of @p ring, and may skip chunks. *wanted is false before the call. */
	struct prb_error *(*begin)(void *context, struct prb_ring *ring, bool *wanted);
	struct prb_error *(*row)(void *context, const struct prb_ring_item *row);
	void *context;
};

/** Out of memory and an end of @p visit's row() for that are the only errors of rows. */
struct prb_error *prb_ring_visit(struct prb_target *target,
				 const struct prb_ring_visit *visit) PRB_MUST_CHECK;

/** True for rings of that table. */
bool prb_ring_is(const struct prb_ring *ring, const char *schema, const char *name);

/** True if the row has a value there; @p column may be -1. */
bool prb_ring_has(const struct prb_ring_item *row, int column);

/**
 * For begin(): leaves out chunks before those with rows after @p since (ns since the epoch), but
 * not the last two, which have the last row: the last chunk may have just been begun.
 */
struct prb_error *prb_ring_skip_before(struct prb_ring *ring, int64_t since) PRB_MUST_CHECK;

/** A number of a column of reals; @p none if the row has none. */
double prb_ring_real(const struct prb_ring_item *row, int column, double none);

/**
 * Makes room for one more of @p count rows of @p size bytes: of @p most, the older half goes at
 * once, so that each row costs the same. Returns how many are left.
 */
size_t prb_ring_rows_keep(void *rows, size_t count, size_t most, size_t size);

/** What fits of a text, which ends with a NUL; "" if there is none. */
void prb_ring_copy_text(const struct prb_ring_item *row, int column, char *ret, size_t size);

#endif

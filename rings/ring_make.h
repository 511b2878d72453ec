/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Making a ring (agent/ring.h) from a process of ours, for rows that it keeps of others.
 *
 * The only writer is the one that made it, and rows do not cross slots: a row whose texts do not
 * fit is refused. A writer that is killed leaves a ring without its last row.
 *
 * Threading: one thread at a time. Ownership: the maker is the caller's. Errors: PRB_ERROR_OS, for
 * example if the disk is full; the ring can be read and written to after that.
 */
#ifndef PRB_RINGS_RING_MAKE_H
#define PRB_RINGS_RING_MAKE_H

#include "base/error.h"
#include "rings/ring.h"

struct prb_ring_shape {
	const char *schema, *name;
	const struct prb_ring_column *columns;
	uint32_t column_count;
	uint32_t slot_size;	      /**< bytes, a multiple of 8 */
	uint32_t chunk_shift, chunks; /**< as in the header of a ring */
};

struct prb_ring_maker {
	int fd; /**< open for reading, too */
	struct prb_ring_header header;
	struct prb_ring_parts parts;
};

/** Makes the file @p name, which must not exist, mode 0600. */
struct prb_error *prb_ring_make(int folder, const char *name, const struct prb_ring_shape *shape,
				struct prb_ring_maker *ret) PRB_MUST_CHECK;
void prb_ring_maker_deinit(struct prb_ring_maker *maker);

/** Appends a row; `number` of it is not looked at. PRB_ERROR_BAD_DATA if it does not fit. */
struct prb_error *prb_ring_make_row(struct prb_ring_maker *maker,
				    const struct prb_ring_item *row) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What ring.c and the files about cold chunks share. Internal to rings/. */
#ifndef PRB_RINGS_RING_PRIVATE_H
#define PRB_RINGS_RING_PRIVATE_H

#include "rings/ring.h"

/** Reads up to @p size bytes; what lies behind the end of the file is zero. */
struct prb_error *prb_ring_read_at(const struct prb_ring *ring, void *data, uint64_t size,
				   uint64_t offset, uint64_t *ret) PRB_MUST_CHECK;

/** False if the bounds say that the chunk has no rows of these times. */
bool prb_ring_bounds_meet(const struct prb_ring *ring, uint64_t chunk,
			  const struct prb_ring_bounds *bounds, const struct prb_ring_range *range);

/** The chunk's bounds in the file of a ring; *ret is false if it is too short. */
struct prb_error *prb_ring_read_bounds(const struct prb_ring *ring, uint64_t chunk,
				       struct prb_ring_bounds *ret_bounds,
				       bool *ret) PRB_MUST_CHECK;

#endif

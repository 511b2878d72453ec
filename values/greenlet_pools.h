/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file gevent's pools, and the greenlets of a pool that wait for that same pool: for a free slot,
 * or until the pool is empty.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_VALUES_GREENLET_POOLS_H
#define PRB_VALUES_GREENLET_POOLS_H

#include "base/map.h"
#include "values/greenlets.h"

struct prb_greenlet_pool {
	uint64_t greenlets;   /**< the set of its greenlets */
	uint64_t room, empty; /**< objects that are waited for: for room, and until it is empty */
};

struct prb_greenlet_pools {
	PRB_VEC(struct prb_greenlet_pool) list;
};

/** Notes the pool at @p object; one that cannot be read is none. */
struct prb_error *prb_greenlet_pools_add(struct prb_greenlet_pools *pools, struct prb_python *py,
					 struct prb_mem *mem, uint64_t object) PRB_MUST_CHECK;
/** Sets `own_pool` of greenlets whose `waits_on` is known; @p places: each one's place in the list
 * by its address. At most a million members are looked at. */
struct prb_error *prb_greenlet_pools_judge(const struct prb_greenlet_pools *pools,
					   struct prb_python *py, struct prb_mem *mem,
					   const struct prb_number_map *places,
					   struct prb_greenlets *greenlets) PRB_MUST_CHECK;
void prb_greenlet_pools_deinit(struct prb_greenlet_pools *pools);

#endif

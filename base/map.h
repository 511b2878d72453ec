/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A hash map from addresses (or other numbers) to numbers, usually indices of a vector.
 *
 * It starts as {}. The hash has no key: do not use it for numbers that a target chooses freely.
 */
#ifndef PRB_BASE_MAP_H
#define PRB_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prb_map_slot {
	uint64_t key;
	size_t value; /**< plus one; 0: the slot is free */
};

struct prb_number_map {
	struct prb_map_slot *slots;
	size_t count, capacity; /**< a power of two, or 0 */
};

/** Sets the value of @p key; false when out of memory. */
bool prb_number_map_put(struct prb_number_map *map, uint64_t key, size_t value);

/** The value of @p key; false if there is none. */
bool prb_number_map_get(const struct prb_number_map *map, uint64_t key, size_t *ret);

void prb_number_map_deinit(struct prb_number_map *map);

#endif

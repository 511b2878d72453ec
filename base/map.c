/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/map.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

/* The slot of @p key, or the free one where it belongs; there always is a free one. */
static struct prb_map_slot *find(const struct prb_number_map *map, uint64_t key)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash ^ hash >> 32) & (map->capacity - 1);

	while (map->slots[at].value && map->slots[at].key != key)
		at = (at + 1) & (map->capacity - 1);
	return &map->slots[at];
}

static bool grow(struct prb_number_map *map)
{
	struct prb_number_map larger = {
		.count = map->count,
		.capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY,
	};

	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < map->capacity; i++)
		if (map->slots[i].value)
			*find(&larger, map->slots[i].key) = map->slots[i];
	free(map->slots);
	*map = larger;
	return true;
}

bool prb_number_map_put(struct prb_number_map *map, uint64_t key, size_t value)
{
	if (map->count * 4 >= map->capacity * 3 && !grow(map))
		return false;

	struct prb_map_slot *slot = find(map, key);

	map->count += !slot->value;
	*slot = (struct prb_map_slot){key, value + 1};
	return true;
}

bool prb_number_map_get(const struct prb_number_map *map, uint64_t key, size_t *ret)
{
	if (!map->capacity)
		return false;

	const struct prb_map_slot *slot = find(map, key);

	if (!slot->value)
		return false;
	*ret = slot->value - 1;
	return true;
}

void prb_number_map_deinit(struct prb_number_map *map)
{
	free(map->slots);
	*map = (struct prb_number_map){};
}

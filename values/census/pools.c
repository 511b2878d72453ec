/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Python's allocator for small objects. Each block of at most 512 bytes lies in a pool of blocks of
 * one size, which is aligned to its own size and begins with a header; pools lie in arenas, which
 * the header numbers. So pools are found by the objects in them, without any symbol.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/census/private.h"

enum {
	PY_3_10 = 0x030a,
	SMALL = 512,
	ALIGNMENT = 16, /* since 3.7; 8 before */
	OLD_ALIGNMENT = 8,
	PY_3_7 = 0x0307,
	OLD_POOL = 4 << 10, /* up to 3.9, in arenas of 256 KiB */
	OLD_ARENA = 256 << 10,
	POOL = 16 << 10,
	ARENA = 1 << 20,
	HEADER = 48,
	ARENAS_MAX = 1 << 20,
};

static uint64_t pool_bytes(const struct prb_census *c)
{
	if (c->py->layout.free_threaded)
		return 0;
	return c->py->layout.version >= PY_3_10 ? POOL : OLD_POOL;
}

static size_t slot_of(uint64_t pool, size_t size)
{
	return (size_t)(pool * 0x9e3779b97f4a7c15u >> 24) & (size - 1);
}

static bool grow(struct prb_census *c)
{
	size_t size = c->pool_size ? c->pool_size * 2 : 4096;
	uint64_t *pools = calloc(size, sizeof(*pools));

	if (!pools)
		return false;
	for (size_t i = 0; i < c->pool_size; i++) {
		size_t slot = slot_of(c->pools[i], size);

		if (!c->pools[i])
			continue;
		while (pools[slot])
			slot = (slot + 1) & (size - 1);
		pools[slot] = c->pools[i];
	}
	free(c->pools);
	c->pools = pools;
	c->pool_size = size;
	return true;
}

void prb_census_note_pool(struct prb_census *c, uint64_t block, uint64_t bytes)
{
	uint64_t size = pool_bytes(c), pool = size ? block & ~(size - 1) : 0;
	size_t slot;

	if (!pool || bytes > SMALL || pool == c->last_pool)
		return;
	c->last_pool = pool;
	if (c->pool_count * 2 >= c->pool_size && !grow(c))
		return;
	for (slot = slot_of(pool, c->pool_size); c->pools[slot];
	     slot = (slot + 1) & (c->pool_size - 1))
		if (c->pools[slot] == pool)
			return;
	c->pools[slot] = pool;
	c->pool_count++;
}

/* count, free block, links, then numbers of 4 bytes: arena, size class, next offset, its limit. */
struct header {
	uint32_t count, padding;
	uint64_t free, next, previous;
	uint32_t arena, class, offset, limit;
};
_Static_assert(sizeof(struct header) == HEADER, "as in the target");

static bool is_pool(const struct prb_census *c, const struct header *h, uint64_t size,
		    uint64_t *block)
{
	uint64_t alignment = c->py->layout.version >= PY_3_7 ? ALIGNMENT : OLD_ALIGNMENT;

	*block = (h->class + UINT64_C(1)) * alignment;
	return *block <= SMALL && h->arena < ARENAS_MAX && h->limit == size - *block &&
	       h->offset >= HEADER && h->offset <= size && h->count &&
	       h->count <= (size - HEADER) / *block;
}

static int compare(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return one < other ? -1 : one > other;
}

struct prb_error *prb_census_pools(struct prb_census *c, struct prb_census_pools *ret)
{
	uint64_t size = pool_bytes(c);
	prb_auto_free uint32_t *arenas = malloc((c->pool_count + 1) * sizeof(*arenas));

	*ret = (struct prb_census_pools){.pool_bytes = size};
	if (!size)
		return NULL;
	if (!arenas)
		return prb_error_nomem();
	ret->arena_bytes = size == POOL ? ARENA : OLD_ARENA;
	for (size_t i = 0; i < c->pool_size; i++) {
		struct header header;
		uint64_t block;

		if (!c->pools[i] ||
		    !prb_census_try(c, prb_mem_read(c->mem, c->pools[i], &header, HEADER)) ||
		    !is_pool(c, &header, size, &block))
			continue;
		arenas[ret->pools++] = header.arena;
		ret->used += header.count * block;
		ret->free += size - HEADER - header.count * block;
	}
	if (ret->pools)
		qsort(arenas, ret->pools, sizeof(*arenas), compare);
	for (uint64_t i = 0; i < ret->pools; i++)
		ret->arenas += !i || arenas[i] != arenas[i - 1];
	if (ret->arenas * ret->arena_bytes > ret->pools * size)
		ret->unused = ret->arenas * ret->arena_bytes - ret->pools * size;
	return NULL;
}

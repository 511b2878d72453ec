/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/hash.h"
#include "base/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <stdbool.h>

struct entry {
	uint64_t hash;
	char *text; /* NULL: empty */
};

struct prb_pool {
	struct entry *table; /* open addressing */
	size_t size, count;
};

enum { FIRST_SIZE = 256 };

struct prb_error *prb_pool_create(struct prb_pool **ret)
{
	struct prb_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return prb_error_nomem();
	*ret = pool;
	return NULL;
}

void prb_pool_destroy(struct prb_pool *pool)
{
	if (!pool)
		return;
	for (size_t i = 0; i < pool->size; i++)
		free(pool->table[i].text);
	free(pool->table);
	free(pool);
}

/* FNV-1a, with its upper half folded in: tables take the lowest bits. */
static uint64_t hash(const char *text)
{
	uint64_t value = prb_hash_text(PRB_HASH_START, text);

	return value ^ value >> 32;
}

static bool grow(struct prb_pool *pool)
{
	size_t size = pool->size ? pool->size * 2 : FIRST_SIZE;
	struct entry *table = calloc(size, sizeof(*table));

	if (!table)
		return false;
	for (size_t i = 0; i < pool->size; i++) {
		size_t slot = pool->table[i].hash & (size - 1);

		if (!pool->table[i].text)
			continue;
		while (table[slot].text)
			slot = (slot + 1) & (size - 1);
		table[slot] = pool->table[i];
	}
	free(pool->table);
	pool->table = table;
	pool->size = size;
	return true;
}

struct prb_error *prb_pool_share(struct prb_pool *pool, const char *text, const char **ret)
{
	*ret = NULL;
	if (!text)
		return NULL;
	if (pool->count * 2 >= pool->size && !grow(pool))
		return prb_error_nomem();

	uint64_t value = hash(text);
	size_t slot = value & (pool->size - 1);
	while (pool->table[slot].text &&
	       (pool->table[slot].hash != value || strcmp(pool->table[slot].text, text)))
		slot = (slot + 1) & (pool->size - 1);
	if (!pool->table[slot].text) {
		char *copy = strdup(text);

		if (!copy)
			return prb_error_nomem();
		pool->table[slot] = (struct entry){value, copy};
		pool->count++;
	}
	*ret = pool->table[slot].text;
	return NULL;
}

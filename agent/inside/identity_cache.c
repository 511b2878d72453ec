/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/identity_cache.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { FULL = PRBA_KNOWN / 2, ALIGNED_BITS = 4, USED_BITS = 12 };

_Static_assert(1 << USED_BITS == PRBA_KNOWN, "a hash reaches all rows");

/** Where it is, or would be. */
static size_t place(const struct prba_cache *table, const object *key)
{
	uint32_t hash = (uint32_t)((uintptr_t)key >> ALIGNED_BITS) * 2654435769u;
	size_t at = hash >> (32 - USED_BITS);

	while (table->rows[at].key && table->rows[at].key != key)
		at = (at + 1) % PRBA_KNOWN;
	return at;
}

int prba_cache_get(const struct prba_cache *table, const object *key)
{
	return table->rows[place(table, key)].value;
}

void prba_cache_put(struct prba_cache *table, object *key, int value)
{
	struct prba_cache_row *row = &table->rows[place(table, key)];

	if (!row->key && table->used >= FULL) {
		prba_cache_clear(table);
		row = &table->rows[place(table, key)];
	}
	if (!row->key) {
		prba_python.Py_IncRef(key);
		row->key = key;
		table->used++;
	}
	row->value = value;
}

void prba_cache_clear(struct prba_cache *table)
{
	struct prba_cache *old;

	if (!table->used)
		return;
	old = mmap(NULL, sizeof(*old), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (old != MAP_FAILED)
		*old = *table;
	memset(table, 0, sizeof(*table));
	/* Without memory they are never freed. */
	if (old == MAP_FAILED)
		return;
	for (size_t i = 0; i < PRBA_KNOWN; i++)
		if (old->rows[i].key)
			prba_python.Py_DecRef(old->rows[i].key);
	munmap(old, sizeof(*old));
}

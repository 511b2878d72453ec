/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/unwind/row_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Some 40,000 rows: more places than one process is seen at in hours of sampling. */
enum { MAX_BYTES = 4 << 20 };

/* Only as many rules of the row are there as it counts. */
struct entry {
	uint64_t pc;
	const struct prb_cfi_section *section;
	uint32_t next; /* offset of the next entry of the bucket plus one, or 0 */
	struct prb_cfi_row row;
};

static size_t bucket_of(uint64_t pc)
{
	return (pc * 0x9e3779b97f4a7c15ULL) >> 53;
}

_Static_assert(1ULL << (64 - 53) == PRB_ROW_CACHE_BUCKETS, "the hash has the width of the table");

static struct entry *entry_at(const struct prb_row_cache *cache, uint32_t position)
{
	return (struct entry *)(void *)(cache->bytes + (position - 1));
}

void prb_row_cache_deinit(struct prb_row_cache *cache)
{
	free(cache->bytes);
}

const struct prb_cfi_row *prb_row_cache_find(const struct prb_row_cache *cache, uint64_t pc,
					     const struct prb_cfi_section **section)
{
	uint32_t position = cache->buckets[bucket_of(pc)];

	while (position) {
		const struct entry *entry = entry_at(cache, position);

		if (entry->pc == pc) {
			*section = entry->section;
			return &entry->row;
		}
		position = entry->next;
	}
	return NULL;
}

void prb_row_cache_put(struct prb_row_cache *cache, uint64_t pc,
		       const struct prb_cfi_section *section, const struct prb_cfi_row *row)
{
	size_t rules = row->count * sizeof(row->rules[0]);
	size_t row_length = offsetof(struct prb_cfi_row, rules) + rules;
	size_t length = (offsetof(struct entry, row) + row_length + 7) & ~(size_t)7;
	uint32_t *bucket = &cache->buckets[bucket_of(pc)];

	if (cache->used + length > MAX_BYTES) {
		memset(cache->buckets, 0, sizeof(cache->buckets));
		cache->used = 0;
	}
	if (!prb_vec_grow((void **)&cache->bytes, &cache->capacity, cache->used, length, 1))
		return;

	uint32_t position = (uint32_t)cache->used + 1;
	struct entry *entry = entry_at(cache, position);
	entry->pc = pc;
	entry->section = section;
	entry->next = *bucket;
	memcpy(&entry->row, row, row_length);
	*bucket = position;
	cache->used += length;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/cache/cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "dwarf/cache/cache_file.h"

enum {
	MAX_NAME = 200,
	MAX_RECORD = 1 << 20,
};

/* A run of records with chains through them: the mapped file, or what was put. */
struct records {
	const uint8_t *data;
	size_t size, first; /* records lie from first to size */
	const uint32_t *heads;
};

struct prb_cache {
	char *name;
	int folder; /* -1: there is none */
	void *map;
	size_t map_size;
	struct prb_str put; /* records; begins with padding, since offset 0 means none */
	uint32_t *put_heads;
};

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

static uint64_t hash(uint64_t h, const void *data, size_t length)
{
	const uint8_t *bytes = data;
	uint64_t word;

	for (; length >= sizeof(word); length -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		h = mix(h, word);
	}
	word = 0;
	if (length)
		memcpy(&word, bytes, length);
	return mix(mix(h, word), length);
}

static uint32_t key_hash(const void *key, size_t length)
{
	return (uint32_t)hash(0, key, length);
}

static uint64_t checksum(const struct prb_cache_record *record, const void *key, const void *value)
{
	uint64_t lengths = (uint64_t)record->key_length << 32 | record->value_length;

	return hash(hash(mix(1, lengths), key, record->key_length), value, record->value_length);
}

static bool find(const struct records *records, const void *key, size_t key_length,
		 const void **value, size_t *length)
{
	uint32_t wanted = key_hash(key, key_length);
	uint64_t at = records->heads[wanted % PRB_CACHE_HEADS], before = records->size;

	while (at >= records->first && at < before && at % PRB_CACHE_ALIGN == 0) {
		struct prb_cache_record record;

		if (!prb_inside(at, sizeof(record), records->size))
			return false;
		memcpy(&record, records->data + at, sizeof(record));

		uint64_t content = at + sizeof(record);
		if (!prb_inside(content, (uint64_t)record.key_length + record.value_length,
				records->size))
			return false;

		const uint8_t *found = records->data + content;
		if (record.hash == wanted && record.key_length == key_length &&
		    (key_length == 0 || !memcmp(found, key, key_length))) {
			*value = found + key_length;
			*length = record.value_length;
			return checksum(&record, found, *value) == record.checksum;
		}
		before = at;
		at = record.next;
	}
	return false;
}

/* Build-ids are hex and purposes are words of ours: nothing that could lead elsewhere. */
static bool is_plain(const char *text)
{
	size_t length = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEF-");

	return length > 0 && length < MAX_NAME && !text[length];
}

static void map_file(struct prb_cache *cache)
{
	const struct prb_cache_header wanted = prb_cache_header();
	uint64_t size;
	prb_auto_close int fd = prb_cache_open_file(cache->folder, cache->name, O_RDONLY, &size);

	if (fd < 0 || size < PRB_CACHE_FIRST || size > UINT32_MAX)
		return;

	void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return;
	if (memcmp(map, &wanted, sizeof(wanted))) {
		prb_log("cache", 1, "%s is of another version: ignored", cache->name);
		munmap(map, (size_t)size);
		return;
	}
	cache->map = map;
	cache->map_size = (size_t)size;
}

struct prb_error *prb_cache_open(const char *build_id, const char *purpose, struct prb_cache **ret)
{
	struct prb_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return prb_error_nomem();
	cache->folder = -1;
	cache->name = prb_format("%s.%s", build_id, purpose);
	if (!cache->name) {
		free(cache);
		return prb_error_nomem();
	}
	if (is_plain(build_id) && is_plain(purpose))
		cache->folder = prb_cache_folder();
	if (cache->folder >= 0)
		map_file(cache);
	*ret = cache;
	return NULL;
}

void prb_cache_close(struct prb_cache *cache)
{
	if (!cache)
		return;
	if (cache->folder >= 0 && cache->put.length > PRB_CACHE_ALIGN) {
		prb_auto_error struct prb_error *err = prb_cache_write(
			cache->folder, cache->name, cache->put.data + PRB_CACHE_ALIGN,
			cache->put.length - PRB_CACHE_ALIGN);
		if (err)
			prb_log("cache", 1, "%s", err->message);
	}
	if (cache->map)
		munmap(cache->map, cache->map_size);
	if (cache->folder >= 0)
		close(cache->folder);
	prb_str_deinit(&cache->put);
	free(cache->put_heads);
	free(cache->name);
	free(cache);
}

bool prb_cache_get(struct prb_cache *cache, const void *key, size_t key_length, const void **value,
		   size_t *length)
{
	if (cache->put_heads) {
		struct records put = {
			.data = (const uint8_t *)cache->put.data,
			.size = cache->put.length,
			.first = PRB_CACHE_ALIGN,
			.heads = cache->put_heads,
		};

		if (find(&put, key, key_length, value, length))
			return true;
	}
	if (!cache->map)
		return false;

	const uint8_t *data = cache->map;
	struct records file = {
		.data = data,
		.size = cache->map_size,
		.first = PRB_CACHE_FIRST,
		.heads = (const uint32_t *)(data + sizeof(struct prb_cache_header)),
	};
	return find(&file, key, key_length, value, length);
}

void prb_cache_put(struct prb_cache *cache, const void *key, size_t key_length, const void *value,
		   size_t length)
{
	static const uint8_t zeros[PRB_CACHE_ALIGN];

	if (key_length > MAX_RECORD || length > MAX_RECORD ||
	    cache->put.length > PRB_CACHE_MAX_FILE / 2)
		return;
	if (!cache->put_heads) {
		cache->put_heads = calloc(PRB_CACHE_HEADS, sizeof(*cache->put_heads));
		if (!cache->put_heads)
			return;
	}

	struct prb_cache_record record = {
		.hash = key_hash(key, key_length),
		.key_length = (uint32_t)key_length,
		.value_length = (uint32_t)length,
	};
	uint32_t *head = &cache->put_heads[record.hash % PRB_CACHE_HEADS];

	if (cache->put.length == 0)
		prb_str_append(&cache->put, zeros, PRB_CACHE_ALIGN);

	size_t at = cache->put.length;
	record.next = *head;
	record.checksum = checksum(&record, key, value);
	prb_str_append(&cache->put, &record, sizeof(record));
	prb_str_append(&cache->put, key, key_length);
	prb_str_append(&cache->put, value, length);
	prb_str_append(&cache->put, zeros, -cache->put.length % PRB_CACHE_ALIGN);
	if (cache->put.failed) {
		prb_str_truncate(&cache->put, at);
		cache->put.failed = false;
		return;
	}
	*head = (uint32_t)at;
}

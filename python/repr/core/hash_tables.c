/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hash tables of dicts and of instances, of all versions. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr_private.h"

enum { KEYS_GENERAL, KEYS_UNICODE, KEYS_SPLIT };

enum {
	CHUNK_WORDS = 192, /* a multiple of 3 and 2: whole entries */
	ORDER_MAX = 256,   /* entries of a table whose order lies in bytes */
};

/* No dict has more entries than this; it bounds a walk through garbage. */
static const uint64_t entries_max = UINT64_C(1) << 32;

/* 3.4–3.5: refcnt, size, lookup, usable, entries[size]. */
static struct prb_error *read_open(struct prb_repr *r, uint64_t keys, struct prb_dict_table *ret)
{
	uint64_t header[2];

	PRB_TRY(prb_repr_words(r, keys, PRB_ARRAY_SIZE(header), header));
	*ret = (struct prb_dict_table){.entries = keys + 32, .count = header[1], .words = 3};
	return NULL;
}

/* 3.6–3.10: refcnt, size, lookup, usable, nentries, indices[size], entries[nentries]. */
static struct prb_error *read_compact(struct prb_repr *r, uint64_t keys, struct prb_dict_table *ret)
{
	uint64_t header[5];

	PRB_TRY(prb_repr_words(r, keys, PRB_ARRAY_SIZE(header), header));

	uint64_t size = header[1];

	if (size > entries_max)
		return prb_repr_bad(keys, "a hash table of impossible size");
	*ret = (struct prb_dict_table){
		.indices = keys + 40,
		.size = size,
		.entries = keys + 40 + size * prb_dict_index_width(size),
		.count = header[4],
		.words = 3,
	};
	return NULL;
}

/* 3.11+: refcnt, log2 of size and of the bytes of indices, kind, version, usable, nentries. */
static struct prb_error *read_kinds(struct prb_repr *r, uint64_t keys, struct prb_dict_table *ret)
{
	uint64_t header[4];

	PRB_TRY(prb_repr_words(r, keys, PRB_ARRAY_SIZE(header), header));

	unsigned bits = header[1] & 0xff, index_bits = header[1] >> 8 & 0xff,
		 kind = header[1] >> 16 & 0xff;

	if (bits > 40 || index_bits > 40 || kind > KEYS_SPLIT)
		return prb_repr_bad(keys, "a hash table of unknown kind");
	*ret = (struct prb_dict_table){
		.indices = keys + 32,
		.size = UINT64_C(1) << bits,
		.entries = keys + 32 + (UINT64_C(1) << index_bits),
		.count = header[3],
		.words = kind == KEYS_GENERAL ? 3 : 2,
	};
	return NULL;
}

static struct prb_error *read_header(struct prb_repr *r, uint64_t keys, struct prb_dict_table *ret)
{
	switch (r->traits->keys) {
	case PRB_KEYS_OPEN:
		return read_open(r, keys, ret);
	case PRB_KEYS_COMPACT:
		return read_compact(r, keys, ret);
	case PRB_KEYS_KINDS:
		return read_kinds(r, keys, ret);
	}
	return prb_repr_bad(keys, "a hash table of unknown kind");
}

unsigned prb_dict_index_width(uint64_t size)
{
	return size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= UINT32_MAX ? 4 : 8;
}

struct prb_error *prb_dict_table_read(struct prb_repr *r, uint64_t keys, struct prb_dict_table *ret)
{
	PRB_TRY(read_header(r, keys, ret));
	if (ret->count > entries_max)
		return prb_repr_bad(keys, "a hash table of impossible size");
	return NULL;
}

/*
 * Entries that hold their values: all of them in turn, those without a value left out. With
 * @p hashes, which some lack, the hash of each key stands for it.
 */
static struct prb_error *each_combined(struct prb_repr *r, const struct prb_dict_table *table,
				       uint64_t used, bool hashes, prb_dict_visit *visit,
				       void *context)
{
	uint64_t chunk[CHUNK_WORDS];
	uint64_t per_chunk = CHUNK_WORDS / table->words;

	for (uint64_t i = 0; i < table->count && used; i += per_chunk) {
		uint64_t n = PRB_MIN(table->count - i, per_chunk);

		PRB_TRY(prb_repr_walk(r, n));
		PRB_TRY(prb_repr_words(r, table->entries + i * table->words * 8, n * table->words,
				       chunk));
		for (uint64_t j = 0; j < n && used; j++) {
			const uint64_t *entry = chunk + j * table->words;
			uint64_t key = entry[table->words - 2], value = entry[table->words - 1];

			if (!key || !value)
				continue;
			used--;
			if (!visit(context, hashes ? entry[0] : key, value))
				return NULL;
		}
	}
	r->torn |= used > 0;
	return NULL;
}

/* The order in which the values were inserted, as indices of entries. */
static struct prb_error *read_order(struct prb_repr *r, uint64_t *values, uint8_t *order,
				    uint64_t *count)
{
	uint8_t header[PRB_VALUES_HEADER];

	if (r->traits->values == PRB_VALUES_HEADED) {
		PRB_TRY(prb_mem_read(r->mem, *values, header, sizeof(header)));
		*count = header[1];
		*values += PRB_VALUES_HEADER;
		return prb_mem_read(r->mem, *values + header[0] * 8, order, *count);
	}
	PRB_TRY(prb_mem_read(r->mem, *values - 2, header, 1));
	*count = header[0];
	PRB_TRY(prb_mem_read(r->mem, *values - 2 - *count, order, *count));
	/* The first one is the byte before the size, the second one the byte before that. */
	for (uint64_t i = 0; i < *count / 2; i++) {
		uint8_t other = order[*count - 1 - i];

		order[*count - 1 - i] = order[i];
		order[i] = other;
	}
	return NULL;
}

static struct prb_error *each_split(struct prb_repr *r, const struct prb_dict_table *table,
				    uint64_t values, uint64_t used, prb_dict_visit *visit,
				    void *context)
{
	bool plain = r->traits->values == PRB_VALUES_PLAIN;
	uint64_t count = table->count;
	uint8_t order[ORDER_MAX];

	if (!plain)
		PRB_TRY(read_order(r, &values, order, &count));
	for (uint64_t i = 0; i < count && used; i++) {
		uint64_t key, value, entry = plain ? i : order[i];

		PRB_TRY(prb_repr_walk(r, 1));
		if (entry >= table->count)
			return prb_repr_bad(values, "an order that names no key");
		PRB_TRY(prb_repr_word(r, values + entry * 8, &value));
		r->torn |= !value && !plain;
		if (!value)
			continue;
		PRB_TRY(prb_repr_word(
			r, table->entries + (entry * table->words + table->words - 2) * 8, &key));
		r->torn |= !key;
		if (!key)
			continue;
		used--;
		if (!visit(context, key, value))
			return NULL;
	}
	return NULL;
}

struct prb_error *prb_repr_table_each(struct prb_repr *r, uint64_t keys, uint64_t values,
				      uint64_t used, prb_dict_visit *visit, void *context)
{
	struct prb_dict_table table;

	PRB_TRY(prb_dict_table_read(r, keys, &table));
	if (values)
		return each_split(r, &table, values, used, visit, context);
	return each_combined(r, &table, used, false, visit, context);
}

static struct prb_error *check_dict(struct prb_repr *r, uint64_t dict)
{
	bool is_dict;

	PRB_TRY(prb_repr_is_dict(r, dict, &is_dict));
	return is_dict ? NULL : prb_repr_bad(dict, "not a dict");
}

struct prb_error *prb_repr_dict_size(struct prb_repr *r, uint64_t dict, uint64_t *ret)
{
	PRB_TRY(check_dict(r, dict));
	PRB_TRY(prb_repr_word(r, dict + (uint64_t)r->layout->dict_used, ret));
	if (*ret > entries_max)
		return prb_repr_bad(dict, "a dict of impossible size");
	return NULL;
}

struct prb_error *prb_repr_dict_open(struct prb_repr *r, uint64_t dict, uint64_t *used,
				     uint64_t *keys, uint64_t *values)
{
	PRB_TRY(prb_repr_dict_size(r, dict, used));
	PRB_TRY(prb_repr_word(r, dict + (uint64_t)r->layout->dict_keys, keys));
	return prb_repr_word(r, dict + (uint64_t)r->layout->dict_values, values);
}

struct prb_error *prb_repr_dict_each(struct prb_repr *r, uint64_t dict, prb_dict_visit *visit,
				     void *context)
{
	uint64_t used, keys, values;

	PRB_TRY(prb_repr_dict_open(r, dict, &used, &keys, &values));
	return prb_repr_table_each(r, keys, values, used, visit, context);
}

struct prb_error *prb_repr_dict_each_int(struct prb_repr *r, uint64_t dict, prb_dict_visit *visit,
					 void *context)
{
	uint64_t used, keys, values;
	struct prb_dict_table table;

	PRB_TRY(prb_repr_dict_open(r, dict, &used, &keys, &values));
	/* A table that all empty ones share is made for other keys. */
	if (!used)
		return NULL;
	PRB_TRY(prb_dict_table_read(r, keys, &table));
	if (values || table.words != 3)
		return prb_repr_bad(dict, "not a dict of ints");
	return each_combined(r, &table, used, true, visit, context);
}

struct prb_error *prb_object_dict_each(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				       prb_dict_visit *visit, void *context)
{
	prb_auto_repr struct prb_repr r;

	prb_repr_init(&r, py, mem, NULL, NULL);
	return prb_repr_dict_each(&r, object, visit, context);
}

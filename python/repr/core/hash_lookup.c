/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The value of a name in a hash table. Where the process's hashes can be computed, looks a key up
 * as Python would: a handful of reads, each maybe a network round trip, instead of one for each
 * key. A miss is believed once a key was found so; before, and wherever anything does not fit, all
 * keys are compared.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/siphash.h"
#include "python/repr/core/repr_private.h"

enum {
	COST = 16,	  /* of a key that is read, in entries that are not */
	PROBES_MAX = 128, /* slots that are looked at: far more than any table needs */
	PERTURB_SHIFT = 5,
};

struct search {
	struct prb_repr *r;
	const struct prb_dict_table *table;
	const char *name;
	uint64_t values, hash;
	uint64_t value; /* 0 until found */
	struct prb_error *err;
};

/* How a search by hash ended. */
enum verdict { MORE, FOUND, ABSENT, UNSURE };

/* A snapshot has only what was read when it was made, and should not come to hold the secret. */
static bool is_recorded(const struct prb_python *py)
{
	return !py->target || !py->module || prb_target_is_recorded(py->target) ||
	       py->target->replayed;
}

static bool read_secret(struct prb_python *py)
{
	uint64_t address, size;
	struct prb_error *err = prb_module_symbol(py->module, "_Py_HashSecret", &address, &size);

	if (!err)
		err = prb_mem_read(py->target->mem, address, py->hash_secret,
				   sizeof(py->hash_secret));
	prb_error_destroy(err);
	return !err;
}

/* False if it is not known. */
static bool hash_name(struct prb_repr *r, const char *name, uint64_t *ret)
{
	struct prb_python *py = r->py;

	if (py->hash_trust == PRB_HASH_UNKNOWN || !*name || !prb_is_ascii(name) || is_recorded(py))
		return false;
	if (py->hash_trust == PRB_HASH_UNTRIED)
		py->hash_trust = read_secret(py) ? PRB_HASH_ASSUMED : PRB_HASH_UNKNOWN;
	if (py->hash_trust == PRB_HASH_UNKNOWN)
		return false;
	*ret = r->traits->hash_long ? prb_siphash(2, 4, py->hash_secret, name, strlen(name))
				    : prb_siphash(1, 3, py->hash_secret, name, strlen(name));
	if (*ret == UINT64_MAX) /* -1 means that it failed */
		*ret = UINT64_MAX - 1;
	return true;
}

/* In a str the hash follows the length. */
static struct prb_error *read_hash(struct prb_repr *r, uint64_t text, uint64_t *ret)
{
	return prb_repr_word(r, text + (uint64_t)r->layout->unicode_length + 8, ret);
}

static struct prb_error *compare_entry(struct search *s, uint64_t number, enum verdict *verdict)
{
	const struct prb_dict_table *t = s->table;
	struct prb_repr *r = s->r;
	uint64_t entry[3], hash, key;
	bool same;

	*verdict = MORE;
	PRB_TRY(prb_repr_words(r, t->entries + number * t->words * 8, t->words, entry));
	key = entry[t->words - 2];
	hash = entry[0];
	if (!key)
		return NULL;
	if (t->words == 2)
		PRB_TRY(read_hash(r, key, &hash));
	if (hash != s->hash)
		return NULL;
	PRB_TRY(prb_repr_text_is(r, key, s->name, &same));
	if (!same)
		return NULL;
	s->value = entry[t->words - 1];
	if (s->values) {
		uint64_t first = s->values;

		if (r->traits->values == PRB_VALUES_HEADED)
			first += PRB_VALUES_HEADER;
		PRB_TRY(prb_repr_word(r, first + number * 8, &s->value));
	}
	*verdict = s->value ? FOUND : ABSENT;
	return NULL;
}

static struct prb_error *look_at_slot(struct search *s, uint64_t slot, enum verdict *verdict)
{
	const struct prb_dict_table *t = s->table;
	unsigned width = prb_dict_index_width(t->size);
	int64_t index = 0;

	PRB_TRY(prb_repr_walk(s->r, COST));
	PRB_TRY(prb_mem_read(s->r->mem, t->indices + slot * width, &index, width));
	/* Negative ones are as wide as the slot. */
	index = (int64_t)((uint64_t)index << (64 - 8 * width)) >> (64 - 8 * width);
	*verdict = index == -1 ? ABSENT : MORE;
	if (index == -1 || index == -2) /* never used, used no more */
		return NULL;
	if (index < 0 || (uint64_t)index >= t->count) {
		*verdict = UNSURE;
		return NULL;
	}

	struct prb_error *err = compare_entry(s, (uint64_t)index, verdict);

	/* A key that cannot be read is not the one we look for. */
	if (err &&
	    (prb_error_catch(&err, PRB_ERROR_FAULT) || prb_error_catch(&err, PRB_ERROR_BAD_DATA)))
		*verdict = MORE;
	return err;
}

static struct prb_error *find_by_hash(struct search *s, enum verdict *verdict)
{
	uint64_t mask = s->table->size - 1, slot = s->hash & mask, perturb = s->hash;

	for (unsigned i = 0; i < PROBES_MAX; i++) {
		PRB_TRY(look_at_slot(s, slot, verdict));
		if (*verdict != MORE)
			return NULL;
		perturb >>= PERTURB_SHIFT;
		slot = (slot * 5 + perturb + 1) & mask;
	}
	*verdict = UNSURE;
	return NULL;
}

static bool compare_key(void *context, uint64_t key, uint64_t value)
{
	struct search *search = context;
	bool same = false;

	search->err = prb_repr_walk(search->r, COST);
	if (search->err)
		return false;
	search->err = prb_repr_text_is(search->r, key, search->name, &same);
	if (same)
		search->value = value;
	/* A key that cannot be read is not the one we look for. */
	if (search->err && !prb_error_catch(&search->err, PRB_ERROR_FAULT) &&
	    !prb_error_catch(&search->err, PRB_ERROR_BAD_DATA))
		return false;
	return !same;
}

/* A key that each process has, as long as none of the others was found by its hash. */
static void prove(struct prb_repr *r)
{
	struct prb_python *py = r->py;
	uint64_t interp, sys, ignored;

	if (py->hash_trust != PRB_HASH_ASSUMED || py->hash_tried || !py->runtime ||
	    py->layout.runtime_interpreters < 0 || py->layout.interp_sysdict < 0)
		return;
	py->hash_tried = true;

	struct prb_error *err =
		prb_repr_word(r, py->runtime + (uint64_t)py->layout.runtime_interpreters, &interp);
	if (!err)
		err = prb_repr_word(r, interp + (uint64_t)py->layout.interp_sysdict, &sys);
	if (!err)
		err = prb_repr_dict_get(r, sys, "hexversion", &ignored);
	prb_error_destroy(err);
}

static struct prb_error *find(struct search *s, uint64_t keys, uint64_t used)
{
	struct prb_python *py = s->r->py;
	enum verdict verdict = UNSURE;
	struct prb_dict_table table;

	PRB_TRY(prb_dict_table_read(s->r, keys, &table));
	s->table = &table;
	if (table.size && !(table.size & (table.size - 1)) && hash_name(s->r, s->name, &s->hash)) {
		PRB_TRY(find_by_hash(s, &verdict));
		if (verdict == FOUND)
			py->hash_trust = PRB_HASH_PROVEN;
		if (verdict == ABSENT)
			prove(s->r);
		if (verdict == FOUND || (verdict == ABSENT && py->hash_trust == PRB_HASH_PROVEN))
			return NULL;
	}
	PRB_TRY(prb_repr_table_each(s->r, keys, s->values, used, compare_key, s));
	PRB_TRY(s->err);
	if (s->value && verdict == ABSENT)
		py->hash_trust = PRB_HASH_UNKNOWN;
	return NULL;
}

struct prb_error *prb_repr_table_get(struct prb_repr *r, uint64_t keys, uint64_t values,
				     uint64_t used, const char *name, uint64_t *ret)
{
	struct search search = {.r = r, .name = name, .values = values};

	PRB_TRY(find(&search, keys, used));
	if (!search.value)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no key '%s'", name);
	*ret = search.value;
	return NULL;
}

struct prb_error *prb_repr_dict_get(struct prb_repr *r, uint64_t dict, const char *name,
				    uint64_t *ret)
{
	uint64_t used, keys, values;

	PRB_TRY(prb_repr_dict_open(r, dict, &used, &keys, &values));
	return prb_repr_table_get(r, keys, values, used, name, ret);
}

struct prb_error *prb_object_dict_get(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				      const char *name, uint64_t *ret)
{
	prb_auto_repr struct prb_repr r;

	prb_repr_init(&r, py, mem, NULL, NULL);
	return prb_repr_dict_get(&r, object, name, ret);
}

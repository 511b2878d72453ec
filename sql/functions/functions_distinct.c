/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * approx_count_distinct(x), and its two halves: approx_distinct_sketch(x), a text, and
 * approx_distinct_merge(sketch), the number of different values of all of them.
 *
 * Up to EXACT different values are kept by their hashes and counted exactly. More are estimated by
 * HyperLogLog (Flajolet and others, 2007) with REGISTERS registers, and the estimator of Ertl
 * ("New cardinality estimation algorithms for HyperLogLog sketches", 2017), which is unbiased for
 * all counts. The standard error is 1.04 / sqrt(REGISTERS) = 0.81 %.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/siphash.h"
#include "sql/functions/functions_private.h"

enum {
	BITS = 14, /* of a hash: its register */
	REGISTERS = 1 << BITS,
	RANKS = 64 - BITS, /* of the other bits; a register has 0 to RANKS + 1 */
	SLOTS = REGISTERS / 8,
	EXACT = SLOTS / 2,
	DIGITS = 16, /* of a hash in a sketch */
};

/* A sketch begins with one of these: hashes, or registers as one character each. */
static const char HASHES = 'h', DENSE = 'd', NO_RANK = '0';

struct distinct {
	/** Hashes in a table with open addressing, where 0 is free; or registers. */
	union {
		uint64_t slots[SLOTS];
		uint8_t registers[REGISTERS];
	} * memory;   /* SQLite's, so that what bounds a statement counts it */
	size_t count; /* hashes */
	bool dense;
	bool failed;
};

static void fail(sqlite3_context *context, struct distinct *d, struct prb_error *err)
{
	sqlite3_free(d->memory);
	d->memory = NULL;
	d->failed = true;
	prb_function_fail(context, err);
}

static void note_rank(struct distinct *d, uint64_t hash)
{
	uint64_t rest = hash >> BITS;
	uint8_t rank = rest ? (uint8_t)(__builtin_ctzll(rest) + 1) : RANKS + 1;
	uint8_t *place = &d->memory->registers[hash & (REGISTERS - 1)];

	*place = PRB_MAX(*place, rank);
}

/** From hashes to registers. */
static bool make_dense(struct distinct *d)
{
	uint64_t *hashes = sqlite3_malloc64(sizeof(d->memory->slots));

	if (!hashes)
		return false;
	memcpy(hashes, d->memory->slots, sizeof(d->memory->slots));
	memset(d->memory, 0, sizeof(*d->memory));
	for (size_t i = 0; i < SLOTS; i++)
		if (hashes[i])
			note_rank(d, hashes[i]);
	sqlite3_free(hashes);
	d->dense = true;
	return true;
}

/** Counts a value by its hash; false when out of memory. */
static bool note(struct distinct *d, uint64_t hash)
{
	size_t at;

	hash = hash ? hash : 1;
	if (d->dense) {
		note_rank(d, hash);
		return true;
	}
	for (at = hash >> BITS & (SLOTS - 1); d->memory->slots[at]; at = (at + 1) & (SLOTS - 1))
		if (d->memory->slots[at] == hash)
			return true;
	if (d->count < EXACT) {
		d->memory->slots[at] = hash;
		d->count++;
		return true;
	}
	if (!make_dense(d))
		return false;
	note_rank(d, hash);
	return true;
}

/** The same for equal values on all machines: 1 is equal to 1.0, and not to '1'. */
static uint64_t hash_of(sqlite3_value *value)
{
	/* No secret: sketches of different processes must agree. */
	static const uint64_t keys[][2] = {[SQLITE_INTEGER] = {1, 2},
					   [SQLITE_FLOAT] = {3, 4},
					   [SQLITE_TEXT] = {5, 6},
					   [SQLITE_BLOB] = {7, 8}};
	int type = sqlite3_value_type(value);
	double real = type == SQLITE_FLOAT ? sqlite3_value_double(value) : 0;
	int64_t integer = type == SQLITE_INTEGER ? sqlite3_value_int64(value) : 0;

	if (type == SQLITE_FLOAT && real >= -0x1p63 && real < 0x1p63 && real == trunc(real)) {
		type = SQLITE_INTEGER;
		integer = (int64_t)real;
	}
	if (type == SQLITE_INTEGER)
		return prb_siphash(1, 3, keys[type], &integer, sizeof(integer));
	if (type == SQLITE_FLOAT)
		return prb_siphash(1, 3, keys[type], &real, sizeof(real));

	const void *bytes = sqlite3_value_blob(value);
	int length = sqlite3_value_bytes(value);
	return prb_siphash(1, 3, keys[type], bytes ? bytes : "", bytes ? (size_t)length : 0);
}

/** The aggregate, with memory; NULL if it has failed, which is reported. */
static struct distinct *get(sqlite3_context *context)
{
	struct distinct *d = sqlite3_aggregate_context(context, sizeof(*d));

	if (!d) {
		sqlite3_result_error_nomem(context);
		return NULL;
	}
	if (d->failed || d->memory)
		return d->failed ? NULL : d;
	d->memory = sqlite3_malloc64(sizeof(*d->memory));
	if (!d->memory) {
		fail(context, d, prb_error_nomem());
		return NULL;
	}
	memset(d->memory, 0, sizeof(*d->memory));
	return d;
}

static void step(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct distinct *d;

	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	d = get(context);
	if (d && !note(d, hash_of(values[0])))
		fail(context, d, prb_error_nomem());
}

/** Appends the hash that DIGITS letters "a" to "p" are; false if they are none. */
static bool read_hash(const char *text, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < DIGITS; i++) {
		if (text[i] < 'a' || text[i] > 'p')
			return false;
		*ret = *ret << 4 | (uint64_t)(text[i] - 'a');
	}
	return true;
}

static bool add_hashes(struct distinct *d, const char *text, size_t length, bool *valid)
{
	uint64_t hash;

	*valid = length % DIGITS == 0 && length <= (size_t)EXACT * DIGITS;
	for (size_t at = 0; *valid && at < length; at += DIGITS) {
		*valid = read_hash(text + at, &hash);
		if (*valid && !note(d, hash))
			return false;
	}
	return true;
}

static bool add_registers(struct distinct *d, const char *text, size_t length, bool *valid)
{
	*valid = length == REGISTERS;
	for (size_t i = 0; *valid && i < length; i++)
		*valid = text[i] >= NO_RANK && text[i] <= NO_RANK + RANKS + 1;
	if (!*valid)
		return true;
	if (!d->dense && !make_dense(d))
		return false;
	for (size_t i = 0; i < length; i++) {
		uint8_t rank = (uint8_t)(text[i] - NO_RANK);

		d->memory->registers[i] = PRB_MAX(d->memory->registers[i], rank);
	}
	return true;
}

static void merge(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct distinct *d;
	const char *text;
	size_t length;
	bool valid = false, there = true;

	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	d = get(context);
	if (!d || !prb_function_bytes(context, values[0], &text, &length))
		return;
	if (length && text[0] == HASHES)
		there = add_hashes(d, text + 1, length - 1, &valid);
	else if (length && text[0] == DENSE)
		there = add_registers(d, text + 1, length - 1, &valid);
	if (!there)
		fail(context, d, prb_error_nomem());
	else if (!valid)
		fail(context, d,
		     prb_error_create(PRB_ERROR_USAGE, "%s(): this is no sketch",
				      prb_aggregate_self(context)->name));
}

/** Ertl's sigma, for registers that are empty. */
static double sigma(double x)
{
	double power = 1, sum = x, before;

	if (x == 1)
		return INFINITY;
	do {
		before = sum;
		x *= x;
		sum += x * power;
		power += power;
	} while (sum != before);
	return sum;
}

/** Ertl's tau, for registers that are full. */
static double tau(double x)
{
	double power = 1, sum = 1 - x, before;

	if (x == 0 || x == 1)
		return 0;
	do {
		before = sum;
		x = sqrt(x);
		power *= 0.5;
		sum -= (1 - x) * (1 - x) * power;
	} while (sum != before);
	return sum / 3;
}

static int64_t estimate(const struct distinct *d)
{
	double counts[RANKS + 2] = {}, sum;

	for (size_t i = 0; i < REGISTERS; i++)
		counts[d->memory->registers[i]]++;
	sum = REGISTERS * tau(1 - counts[RANKS + 1] / REGISTERS);
	for (size_t rank = RANKS; rank; rank--)
		sum = 0.5 * (sum + counts[rank]);
	sum += REGISTERS * sigma(counts[0] / REGISTERS);
	/* All registers are full: over 2^64 values. */
	return sum > 0 ? (int64_t)llround(
				 fmin((double)REGISTERS * REGISTERS / (2 * M_LN2 * sum), 9e18))
		       : INT64_MAX;
}

static void final(sqlite3_context *context)
{
	struct distinct *d = sqlite3_aggregate_context(context, 0);

	if (d && d->failed)
		return;
	sqlite3_result_int64(context, !d || !d->memory ? 0
				      : d->dense       ? estimate(d)
						       : (int64_t)d->count);
	if (d)
		sqlite3_free(d->memory);
}

static void put_sketch(const struct distinct *d, struct prb_str *s)
{
	prb_str_putc(s, d->dense ? DENSE : HASHES);
	for (size_t i = 0; d->dense && i < REGISTERS; i++)
		prb_str_putc(s, (char)(NO_RANK + d->memory->registers[i]));
	for (size_t i = 0; !d->dense && i < SLOTS; i++)
		for (int bits = 60; d->memory->slots[i] && bits >= 0; bits -= 4)
			prb_str_putc(s, (char)('a' + (d->memory->slots[i] >> bits & 15)));
}

static void final_sketch(sqlite3_context *context)
{
	struct distinct *d = sqlite3_aggregate_context(context, 0);
	prb_auto_str struct prb_str s = {};

	if (!d || d->failed || !d->memory)
		return;
	put_sketch(d, &s);
	sqlite3_free(d->memory);
	prb_function_text(context, &s);
}

const struct prb_aggregate prb_distinct_aggregates[] = {
	{"approx_count_distinct", 1, step, NULL, NULL, final},
	{"approx_distinct_sketch", 1, step, NULL, NULL, final_sketch},
	{"approx_distinct_merge", 1, merge, NULL, NULL, final},
	{},
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * approx_quantile(x, 0.99), and its two halves: approx_quantile_sketch(x), a text, and
 * approx_quantile_merge(sketch, 0.99), the quantile of all of them.
 *
 * Up to EXACT values are kept, and the result equals percentile_disc()'s. More are counted in
 * buckets whose bounds grow by a constant factor, as in DDSketch (Masson, Rim and Lee, 2019): the
 * result differs from percentile_disc()'s by at most ERROR of it, whatever the values are and
 * however many sketches are merged.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/functions/functions_private.h"

enum {
	EXACT = 1024,
	/* Keys of buckets: 0 for zero, and with the sign of the value, around MIDDLE: the
	 * logarithms of doubles are within ± 74444 buckets. */
	MIDDLE = 80000,
	INFINITE = 2 * MIDDLE,
};

/* Relative to the value. */
static const double ERROR = 0.005;

/* A sketch begins with one of these: values, or buckets with their counts. */
static const char VALUES = 'v', BUCKETS = 'b';

struct bucket {
	int32_t key; /* in the order of the values */
	uint64_t count;
};

/** Memory is SQLite's, so that what bounds a statement counts it. */
struct quantile {
	double *values; /* EXACT, not yet counted */
	size_t value_count;
	struct bucket *buckets; /* by key */
	size_t bucket_count;
	double fraction;
	bool begun; /* the fraction is known */
	bool failed;
};

static void free_memory(struct quantile *q)
{
	sqlite3_free(q->values);
	sqlite3_free(q->buckets);
	q->values = NULL;
	q->buckets = NULL;
}

static void fail(sqlite3_context *context, struct quantile *q, struct prb_error *err)
{
	free_memory(q);
	q->failed = true;
	prb_function_fail(context, err);
}

/** Logarithm of the factor between the bounds of a bucket. */
static double width(void)
{
	return log1p(2 * ERROR / (1 - ERROR));
}

static int32_t key_of(double value)
{
	int32_t key;

	if (value == 0)
		return 0;
	key = isinf(value) ? INFINITE : MIDDLE + (int32_t)ceil(log(fabs(value)) / width());
	return value < 0 ? -key : key;
}

/** The value in a bucket whose distance from all others in there is at most ERROR of them. */
static double value_of(int32_t key)
{
	double middle;

	if (!key)
		return 0;
	if (abs(key) == INFINITE)
		return key < 0 ? -INFINITY : INFINITY;
	middle = fmin(exp((abs(key) - MIDDLE) * width() + log1p(-ERROR)), DBL_MAX);
	return key < 0 ? -middle : middle;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/** Adds buckets that are sorted by their keys. False when out of memory. */
static bool add_buckets(struct quantile *q, const struct bucket *more, size_t count)
{
	size_t room = q->bucket_count + count, i = 0, k = 0, made = 0;
	struct bucket *all = sqlite3_malloc64((room + 1) * sizeof(*all));

	if (!all)
		return false;
	while (i < q->bucket_count || k < count) {
		const struct bucket *next =
			k == count || (i < q->bucket_count && q->buckets[i].key <= more[k].key)
				? &q->buckets[i++]
				: &more[k++];

		if (made && all[made - 1].key == next->key)
			all[made - 1].count += next->count;
		else
			all[made++] = *next;
	}
	sqlite3_free(q->buckets);
	q->buckets = all;
	q->bucket_count = made;
	return true;
}

/** Counts the values that were kept. */
static bool count_values(struct quantile *q)
{
	struct bucket *more;
	bool there;

	if (!q->value_count)
		return true;
	more = sqlite3_malloc64(q->value_count * sizeof(*more));
	if (!more)
		return false;
	qsort(q->values, q->value_count, sizeof(*q->values), by_value);
	for (size_t i = 0; i < q->value_count; i++)
		more[i] = (struct bucket){key_of(q->values[i]), 1};
	there = add_buckets(q, more, q->value_count);
	sqlite3_free(more);
	q->value_count = 0;
	return there;
}

static bool add_value(struct quantile *q, double value)
{
	if (isnan(value) || (q->value_count == EXACT && !count_values(q)))
		return isnan(value);
	if (!q->values)
		q->values = sqlite3_malloc64(EXACT * sizeof(*q->values));
	if (!q->values)
		return false;
	q->values[q->value_count++] = value;
	return true;
}

/** The aggregate; NULL if it has failed, which is reported. @p fraction: the argument, or NULL. */
static struct quantile *get(sqlite3_context *context, sqlite3_value *fraction)
{
	struct quantile *q = sqlite3_aggregate_context(context, sizeof(*q));
	struct prb_error *err;

	if (!q) {
		sqlite3_result_error_nomem(context);
		return NULL;
	}
	if (q->failed || q->begun || !fraction)
		return q->failed ? NULL : q;
	q->begun = true;
	err = prb_function_fraction(context, fraction, &q->fraction);
	if (!err)
		return q;
	fail(context, q, err);
	return NULL;
}

static void step(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct quantile *q;
	double value;

	if (sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	q = get(context, count > 1 ? values[1] : NULL);
	if (!q)
		return;
	if (!prb_function_number(context, values[0], prb_aggregate_self(context)->name, &value)) {
		free_memory(q);
		q->failed = true;
	} else if (!add_value(q, value)) {
		fail(context, q, prb_error_nomem());
	}
}

/** Adds "1.5 2 …". */
static bool merge_values(struct quantile *q, const char *text, bool *valid)
{
	for (*valid = true; *text && *valid;) {
		char *end;
		double value = strtod(text, &end);

		*valid = end > text && (*end == ' ' || !*end);
		if (*valid && !add_value(q, value))
			return false;
		text = *end ? end + 1 : end;
	}
	return true;
}

/** Reads "key:count", behind a bucket of a smaller key. */
static bool read_bucket(const char **text, int32_t before, struct bucket *ret)
{
	char *end;
	long key = strtol(*text, &end, 10);

	if (end == *text || *end != ':' || key <= before || labs(key) > INFINITE)
		return false;
	ret->key = (int32_t)key;
	*text = end + 1;
	if (**text < '1' || **text > '9')
		return false;
	ret->count = strtoull(*text, &end, 10);
	*text = *end ? end + 1 : end;
	/* So that no sum of them overflows. */
	return ret->count < UINT64_C(1) << 40 && (*end == ' ' || !*end);
}

/** Adds "-5:1 7:3 …". */
static bool merge_buckets(struct quantile *q, const char *text, size_t length, bool *valid)
{
	struct bucket *more = sqlite3_malloc64((length / 4 + 1) * sizeof(*more));
	int32_t before = -INFINITE - 1;
	size_t count = 0;
	bool there = more;

	*valid = true;
	while (more && *text && *valid) {
		*valid = read_bucket(&text, before, &more[count]);
		before = more[count].key;
		count++;
	}
	if (more && *valid)
		there = add_buckets(q, more, count);
	sqlite3_free(more);
	return there;
}

static void merge(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct quantile *q;
	const char *text;
	size_t length;
	bool valid = false, there = true;

	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	q = get(context, values[1]);
	if (!q || !prb_function_bytes(context, values[0], &text, &length))
		return;
	if (strlen(text) == length && text[0] == VALUES)
		there = merge_values(q, text + 1, &valid);
	else if (strlen(text) == length && text[0] == BUCKETS)
		there = merge_buckets(q, text + 1, length, &valid);
	if (!there)
		fail(context, q, prb_error_nomem());
	else if (!valid)
		fail(context, q,
		     prb_error_create(PRB_ERROR_USAGE, "%s(): this is no sketch",
				      prb_aggregate_self(context)->name));
}

/** The rank of the first value that at least the fraction of all does not exceed. */
static uint64_t rank_of(const struct quantile *q, uint64_t total)
{
	double rank = ceil(q->fraction * (double)total) - 1;

	return rank > 0 ? PRB_MIN((uint64_t)rank, total - 1) : 0;
}

static void put_result(sqlite3_context *context, struct quantile *q)
{
	uint64_t total = 0, seen = 0, rank;

	if (!q->bucket_count) {
		if (!q->value_count)
			return;
		qsort(q->values, q->value_count, sizeof(*q->values), by_value);
		prb_function_real(context, q->values[rank_of(q, q->value_count)]);
		return;
	}
	if (!count_values(q)) {
		sqlite3_result_error_nomem(context);
		return;
	}
	for (size_t i = 0; i < q->bucket_count; i++)
		total += q->buckets[i].count;
	rank = rank_of(q, total);
	for (size_t i = 0; i < q->bucket_count; i++) {
		seen += q->buckets[i].count;
		if (seen <= rank)
			continue;
		prb_function_real(context, value_of(q->buckets[i].key));
		return;
	}
}

static void final(sqlite3_context *context)
{
	struct quantile *q = sqlite3_aggregate_context(context, 0);

	if (!q || q->failed)
		return;
	if (!isnan(q->fraction))
		put_result(context, q);
	free_memory(q);
}

static void put_sketch(const struct quantile *q, struct prb_str *s)
{
	prb_str_putc(s, q->bucket_count ? BUCKETS : VALUES);
	for (size_t i = 0; i < q->bucket_count; i++)
		prb_str_printf(s, "%s%d:%llu", i ? " " : "", (int)q->buckets[i].key,
			       (unsigned long long)q->buckets[i].count);
	for (size_t i = 0; !q->bucket_count && i < q->value_count; i++)
		prb_str_printf(s, "%s%.17g", i ? " " : "", q->values[i]);
}

static void final_sketch(sqlite3_context *context)
{
	struct quantile *q = sqlite3_aggregate_context(context, 0);
	prb_auto_str struct prb_str s = {};

	if (!q || q->failed)
		return;
	if (q->bucket_count && !count_values(q)) {
		sqlite3_result_error_nomem(context);
	} else if (q->bucket_count || q->value_count) {
		put_sketch(q, &s);
		prb_function_text(context, &s);
	}
	free_memory(q);
}

const struct prb_aggregate prb_quantile_aggregates[] = {
	{"approx_quantile", 2, step, NULL, NULL, final},
	{"approx_quantile_sketch", 1, step, NULL, NULL, final_sketch},
	{"approx_quantile_merge", 2, merge, NULL, NULL, final},
	{},
};

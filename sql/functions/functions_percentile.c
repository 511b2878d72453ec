/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * median(), percentile_cont(), percentile_disc(). Values are kept until the end of the group; the
 * one in question is found without sorting all of them. In a window the oldest leave first.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "sql/functions/functions_private.h"

/* Integers that a double holds exactly. */
static const double exact_max = 9007199254740992.0;

/** Memory is SQLite's, so that what bounds a statement counts it. */
struct values {
	double *items;
	size_t count, capacity;
};

struct sample {
	struct values values;
	size_t left;  /* the first so many values left the window */
	size_t reals; /* values that are no integers */
	double fraction;
	bool descending;
	bool failed;
};

static void values_free(struct values *values)
{
	sqlite3_free(values->items);
	*values = (struct values){};
}

static bool values_push(struct values *values, double value)
{
	if (values->count == values->capacity) {
		size_t capacity = values->capacity ? values->capacity * 2 : 16;
		double *items = sqlite3_realloc64(values->items, capacity * sizeof(*items));

		if (!items)
			return false;
		values->items = items;
		values->capacity = capacity;
	}
	values->items[values->count++] = value;
	return true;
}

/** True for an integer that comes back as it was. */
static bool is_exact(sqlite3_value *value)
{
	return sqlite3_value_numeric_type(value) == SQLITE_INTEGER &&
	       fabs(sqlite3_value_double(value)) <= exact_max;
}

static bool is_disc(sqlite3_context *context)
{
	return !strcmp(prb_aggregate_self(context)->name, "percentile_disc");
}

static void fail(sqlite3_context *context, struct sample *sample, struct prb_error *err)
{
	values_free(&sample->values);
	sample->failed = true;
	prb_function_fail(context, err);
}

/** The second and third argument, the same in each row; false if wrong, which is reported. */
static bool read_arguments(sqlite3_context *context, struct sample *sample, int count,
			   sqlite3_value **values)
{
	const char *order = count > 2 ? (const char *)sqlite3_value_text(values[2]) : "asc";

	sample->fraction = 0.5;
	if (count > 1) {
		struct prb_error *err =
			prb_function_fraction(context, values[1], &sample->fraction);

		if (err) {
			fail(context, sample, err);
			return false;
		}
	}
	sample->descending = order && !strcasecmp(order, "desc");
	if (order && (sample->descending || !strcasecmp(order, "asc")))
		return true;
	fail(context, sample,
	     prb_error_create(PRB_ERROR_USAGE, "%s(): the order is 'asc' or 'desc'",
			      prb_aggregate_self(context)->name));
	return false;
}

static void step(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct sample *sample = sqlite3_aggregate_context(context, sizeof(*sample));
	double value;

	if (!sample) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (sample->failed || sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	if (!sample->values.count && !read_arguments(context, sample, count, values))
		return;
	if (!prb_function_number(context, values[0], prb_aggregate_self(context)->name, &value)) {
		sample->failed = true;
		values_free(&sample->values);
		return;
	}
	if (sample->values.count - sample->left >= PRB_PERCENTILE_MAX) {
		fail(context, sample,
		     prb_error_create(PRB_ERROR_USAGE,
				      "%s(): over %d values in one group; group by more, or take a "
				      "part of the rows",
				      prb_aggregate_self(context)->name, PRB_PERCENTILE_MAX));
		return;
	}
	if (!values_push(&sample->values, value)) {
		fail(context, sample, prb_error_nomem());
		return;
	}
	sample->reals +=
		sqlite3_value_numeric_type(values[0]) != SQLITE_INTEGER || fabs(value) > exact_max;
}

static void inverse(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct sample *sample = sqlite3_aggregate_context(context, 0);

	(void)count;
	if (!sample || sample->failed || sqlite3_value_type(values[0]) == SQLITE_NULL ||
	    sample->left == sample->values.count)
		return;
	sample->left++;
	sample->reals -= !is_exact(values[0]);
	/* Removed values take no more room than present ones. */
	if (sample->left * 2 > sample->values.count) {
		size_t rest = sample->values.count - sample->left;

		memmove(sample->values.items, sample->values.items + sample->left,
			rest * sizeof(*sample->values.items));
		sample->values.count = rest;
		sample->left = 0;
	}
}

static void swap(double *a, double *b)
{
	double kept = *a;

	*a = *b;
	*b = kept;
}

/**
 * Puts the value of rank @p rank in its place, smaller ones in front of it, larger ones behind. The
 * pivot is chosen so that no order of values that someone prepared makes it slow.
 */
static void select_rank(double *values, size_t count, size_t rank)
{
	uint64_t state = 0x9e3779b97f4a7c15 ^ count;
	size_t low = 0, high = count;

	while (high - low > 1) {
		size_t less = low, at = low, more = high;
		double pivot;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		pivot = values[low + state % (high - low)];
		/* [low, less) are below the pivot, [less, at) equal, [more, high) above. */
		while (at < more) {
			if (values[at] < pivot)
				swap(&values[less++], &values[at++]);
			else if (values[at] > pivot)
				swap(&values[at], &values[--more]);
			else
				at++;
		}
		if (rank < less)
			high = less;
		else if (rank >= more)
			low = more;
		else
			return;
	}
}

static double minimum(const double *values, size_t count)
{
	double least = values[0];

	for (size_t i = 1; i < count; i++)
		least = PRB_MIN(values[i], least);
	return least;
}

/** The value at a place between two ranks, if there is none at it. */
static double interpolated(double *values, size_t count, double place)
{
	size_t rank = (size_t)floor(place);
	double part = place - floor(place), next;

	select_rank(values, count, rank);
	if (!(part > 0) || rank + 1 >= count)
		return values[rank];
	next = minimum(values + rank + 1, count - rank - 1);
	/* Also without overflow, and between two that are infinite. */
	return next == values[rank] ? next : values[rank] * (1 - part) + next * part;
}

static void result(sqlite3_context *context, const struct sample *sample, double *values)
{
	size_t count = sample->values.count - sample->left;
	double fraction = sample->fraction, place;

	if (!is_disc(context)) {
		if (sample->descending)
			fraction = 1 - fraction;
		prb_function_real(context, interpolated(values, count, fraction * (count - 1)));
		return;
	}
	/* The first value that at least this fraction of all does not exceed. */
	place = fmax(ceil(fraction * count) - 1, 0);
	if (sample->descending)
		place = count - 1 - place;
	select_rank(values, count, (size_t)place);
	if (sample->reals)
		prb_function_real(context, values[(size_t)place]);
	else
		sqlite3_result_int64(context, (sqlite3_int64)values[(size_t)place]);
}

static void value(sqlite3_context *context)
{
	const struct sample *sample = sqlite3_aggregate_context(context, 0);
	double *copy;
	size_t count;

	if (!sample || sample->failed || sample->values.count == sample->left ||
	    isnan(sample->fraction))
		return;
	count = sample->values.count - sample->left;
	copy = sqlite3_malloc64(count * sizeof(*copy));
	if (!copy) {
		sqlite3_result_error_nomem(context);
		return;
	}
	memcpy(copy, sample->values.items + sample->left, count * sizeof(*copy));
	result(context, sample, copy);
	sqlite3_free(copy);
}

static void final(sqlite3_context *context)
{
	struct sample *sample = sqlite3_aggregate_context(context, 0);

	if (!sample)
		return;
	if (!sample->failed && sample->values.count > sample->left && !isnan(sample->fraction))
		result(context, sample, sample->values.items + sample->left);
	values_free(&sample->values);
}

const struct prb_aggregate prb_percentile_aggregates[] = {
	{"median", 1, step, inverse, value, final},
	{"percentile_cont", 2, step, inverse, value, final},
	{"percentile_cont", 3, step, inverse, value, final},
	{"percentile_disc", 2, step, inverse, value, final},
	{"percentile_disc", 3, step, inverse, value, final},
	{},
};

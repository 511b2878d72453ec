/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Variance and standard deviation by Welford's method: mean and squared distances are carried
 * along, so that large values of small spread lose nothing.
 */
#include <math.h>
#include <string.h>

#include "sql/functions/functions_private.h"

struct moments {
	uint64_t count;
	double mean, squares; /* squares: the sum of squared distances from the mean */
	uint64_t infinite;    /* values that are no finite number; they make the result NULL */
	bool failed;
};

static void step(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct moments *m = sqlite3_aggregate_context(context, sizeof(*m));
	double value, distance;

	(void)count;
	if (!m) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (m->failed || sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	if (!prb_function_number(context, values[0], prb_aggregate_self(context)->name, &value)) {
		m->failed = true;
		return;
	}
	if (!isfinite(value)) {
		m->infinite++;
		return;
	}
	m->count++;
	distance = value - m->mean;
	m->mean += distance / (double)m->count;
	m->squares += distance * (value - m->mean);
}

static void inverse(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct moments *m = sqlite3_aggregate_context(context, 0);
	double value, distance;

	(void)count;
	if (!m || m->failed || sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	value = sqlite3_value_double(values[0]);
	if (!isfinite(value)) {
		m->infinite--;
		return;
	}
	m->count--;
	if (!m->count) {
		m->mean = m->squares = 0;
		return;
	}
	distance = value - m->mean;
	m->mean -= distance / (double)m->count;
	m->squares -= distance * (value - m->mean);
	/* One value has no spread, whatever rounding says; no spread is negative. */
	if (m->count == 1 || m->squares < 0)
		m->squares = 0;
}

static void value(sqlite3_context *context)
{
	const struct moments *m = sqlite3_aggregate_context(context, 0);
	const char *name = prb_aggregate_self(context)->name;
	bool population = strstr(name, "_pop") != NULL, deviation = !strncmp(name, "std", 3);
	double variance;

	/* Of a sample of one nothing is known; of none not even that. */
	if (!m || m->failed || m->infinite || m->count < (population ? 1 : 2))
		return;
	variance = m->squares / (double)(population ? m->count : m->count - 1);
	prb_function_real(context, deviation ? sqrt(variance) : variance);
}

const struct prb_aggregate prb_deviation_aggregates[] = {
	{"stddev", 1, step, inverse, value, value},
	{"stddev_samp", 1, step, inverse, value, value},
	{"stddev_pop", 1, step, inverse, value, value},
	{"variance", 1, step, inverse, value, value},
	{"var_samp", 1, step, inverse, value, value},
	{"var_pop", 1, step, inverse, value, value},
	{},
};

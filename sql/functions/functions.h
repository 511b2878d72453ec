/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file SQL functions in addition to SQLite's own.
 *
 *     now()                                  seconds since the epoch, one value in a statement
 *     year(t) month day hour minute second dow (0 is Sunday), date_part('week', t)
 *     date_trunc('hour', t), date_bin('5 min', t [, origin])
 *     date_add(t, '5 min'), date_sub(t, 300)
 *     to_timestamp('2026-01-02 03:04'), to_interval('5 min'), time_text(t)
 *     median(x), percentile_cont(x, 0.9), percentile_disc(x, 0.9)      also as window functions
 *     stddev(x) stddev_samp stddev_pop variance var_samp var_pop       also as window functions
 *     approx_count_distinct(x)        exact up to 1,024 values; standard error 0.81 % beyond
 *     approx_quantile(x, 0.99)        exact up to 1,024 values; within 0.5 % of the value beyond
 *     text REGEXP pattern, regexp(pattern, text), regexp_like(text, pattern [, flags])
 *     regexp_replace(text, pattern, replacement [, flags]), regexp_substr(text, pattern [, group])
 *     bytes_text(n), duration_text(seconds), error('message')
 *
 * approx_distinct_sketch(x) and approx_quantile_sketch(x) give what another process can merge, with
 * approx_distinct_merge(sketch) and approx_quantile_merge(sketch, 0.99).
 *
 * Times are UTC. NULL in gives NULL out, and aggregates leave NULLs out, as in PostgreSQL. A time
 * that is beyond the years 0 to 9999, and a result that is no finite number, is NULL. Text where
 * a number belongs is an error.
 *
 * Bounds: median() and percentiles keep at most PRB_PERCENTILE_MAX values, then they fail; a
 * regular expression has those of base/regex.h.
 */
#ifndef PRB_SQL_FUNCTIONS_FUNCTIONS_H
#define PRB_SQL_FUNCTIONS_FUNCTIONS_H

#include <stdbool.h>

#include "base/error.h"

struct sqlite3;

/** The collation of values that are shown as repr() shows them; see functions_repr.c. */
#define PRB_COLLATION_REPR "python_repr"

enum {
	/** Values of one group that a percentile is taken of: 64 MiB. */
	PRB_PERCENTILE_MAX = 8 << 20,
};

/** The session as functions see it; lives longer than the connection. */
struct prb_functions_host {
	/** The statement's time: the session sets it before the first step of each. */
	double now;
	/** True if the statement is to end: asked by what may take long. NULL: never. */
	bool (*cancelled)(void *context);
	void *context;
};

/** Registers all of them with @p db. PRB_ERROR_NOMEM, PRB_ERROR_FAILED. */
struct prb_error *prb_functions_register(struct sqlite3 *db,
					 const struct prb_functions_host *host) PRB_MUST_CHECK;

#endif

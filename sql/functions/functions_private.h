/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the files of functions: their tables, and access to arguments and results.
 * Internal to sql/functions/.
 */
#ifndef PRB_SQL_FUNCTIONS_FUNCTIONS_PRIVATE_H
#define PRB_SQL_FUNCTIONS_FUNCTIONS_PRIVATE_H

#include <sqlite3.h>

#include "base/error.h"
#include "base/str.h"
#include "sql/functions/functions.h"

/** A scalar function; one with several forms has a row for each. */
struct prb_function {
	const char *name; /**< NULL ends a table */
	int arguments;
	void (*call)(sqlite3_context *context, int count, sqlite3_value **values);
	bool effect; /**< is not to be called ahead of the rows that need it */
};

extern const struct prb_function prb_time_functions[];
extern const struct prb_function prb_regex_functions[];
extern const struct prb_function prb_text_functions[];

/** Compares as PRB_COLLATION_REPR does; for sqlite3_create_collation_v2(). */
int prb_repr_compare(void *unused, int a_length, const void *a_text, int b_length,
		     const void *b_text);

/** An aggregate; a window function too if it has `inverse` and `value`. */
struct prb_aggregate {
	const char *name; /**< NULL ends a table */
	int arguments;
	void (*step)(sqlite3_context *context, int count, sqlite3_value **values);
	void (*inverse)(sqlite3_context *context, int count, sqlite3_value **values);
	void (*value)(sqlite3_context *context);
	void (*final)(sqlite3_context *context);
};

extern const struct prb_aggregate prb_percentile_aggregates[];
extern const struct prb_aggregate prb_deviation_aggregates[];
extern const struct prb_aggregate prb_distinct_aggregates[];
extern const struct prb_aggregate prb_quantile_aggregates[];

/** The one whose function is called with @p context. */
static inline const struct prb_aggregate *prb_aggregate_self(sqlite3_context *context)
{
	return sqlite3_user_data(context);
}

/** Ends the statement with an error, which is taken. */
void prb_function_fail(sqlite3_context *context, struct prb_error *err);

/** The result: NULL if it is no finite number. */
void prb_function_real(sqlite3_context *context, double value);

/** The result: a text that is taken. */
void prb_function_text(sqlite3_context *context, struct prb_str *s);

/** Text of an argument, not NULL; false, and out of memory reported, if it cannot be had. */
bool prb_function_bytes(sqlite3_context *context, sqlite3_value *value, const char **text,
			size_t *length);

/** The fraction that an argument of an aggregate is; NAN for NULL. PRB_ERROR_USAGE for what is no
 * number from 0 to 1. */
struct prb_error *prb_function_fraction(sqlite3_context *context, sqlite3_value *value,
					double *ret) PRB_MUST_CHECK;

/**
 * The number that an argument is. False for NULL, and, with an error reported, for what is no
 * number; @p name is the function's.
 */
bool prb_function_number(sqlite3_context *context, sqlite3_value *value, const char *name,
			 double *ret);

#endif

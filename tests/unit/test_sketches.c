/* SPDX-License-Identifier: GPL-3.0-or-later */
/* approx_count_distinct() and approx_quantile() against exact values, in one piece and merged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sql/functions/functions.h"

static struct prb_functions_host host;

static int set_up(void **state)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_null(prb_functions_register(db, &host));
	/* 300,000 pseudo-random numbers, the same each time. */
	assert_int_equal(sqlite3_exec(db,
				      "CREATE TABLE n AS WITH RECURSIVE c(i) AS (SELECT 1 UNION "
				      "ALL SELECT i + 1 FROM c WHERE i < 300000) SELECT i, i * "
				      "7919 % 300007 AS x FROM c",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	*state = db;
	return 0;
}

static int tear_down(void **state)
{
	return sqlite3_close(*state);
}

/** The first row's columns as text with | between them, or the message of the error. */
static char *query(sqlite3 *db, const char *sql)
{
	struct prb_str s = {};
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	if (sqlite3_step(stmt) != SQLITE_ROW)
		prb_str_puts(&s, sqlite3_errmsg(db));
	else
		for (int i = 0; i < sqlite3_column_count(stmt); i++) {
			const char *text = (const char *)sqlite3_column_text(stmt, i);

			prb_str_printf(&s, "%s%s", i ? "|" : "", text ? text : "NULL");
		}
	sqlite3_finalize(stmt);
	return prb_str_take(&s);
}

static void expect(sqlite3 *db, const char *sql, const char *answer)
{
	prb_auto_free char *found = query(db, sql);

	if (strcmp(found, answer))
		fail_msg("%s\ngives    %s\nwhere it is %s", sql, found, answer);
}

static void test_few_values_are_exact(void **state)
{
	expect(*state, "SELECT approx_count_distinct(x % 1024), approx_count_distinct(NULL) FROM n",
	       "1024|0");
	expect(*state, "SELECT approx_count_distinct(x) FROM n WHERE 0", "0");
	/* Equality as in count(DISTINCT). */
	expect(*state,
	       "SELECT approx_count_distinct(v), count(DISTINCT v) FROM (SELECT 1 AS v UNION ALL "
	       "SELECT 1.0 UNION ALL SELECT '1' UNION ALL SELECT x'31' UNION ALL SELECT 1.5 UNION "
	       "ALL SELECT -0.0 UNION ALL SELECT 0 UNION ALL SELECT '' UNION ALL SELECT x'')",
	       "7|7");
	expect(*state,
	       "SELECT approx_quantile(x, 0.9) = percentile_disc(x, 0.9), approx_quantile(x, 0) = "
	       "min(x), approx_quantile(x, 1) = max(x) FROM n WHERE i <= 1024",
	       "1|1|1");
	expect(*state, "SELECT approx_quantile(x, 0.5) FROM n WHERE 0", "NULL");
	expect(*state, "SELECT approx_quantile(x, NULL) FROM n", "NULL");
	expect(*state, "SELECT approx_quantile(x, 2) FROM n",
	       "approx_quantile(): the fraction must be from 0 to 1");
	expect(*state, "SELECT approx_quantile('a', 0.5)",
	       "approx_quantile(): 'a' is not a number");
	expect(*state, "SELECT approx_quantile(9e999, 0.5), approx_quantile(0, 0.5)", "NULL|0.0");
}

/** The standard error is 0.81 %: four of them. */
static void test_many_distinct(void **state)
{
	static const long counts[] = {1025, 3000, 10000, 40000, 70000, 150000, 300000};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(counts); i++) {
		prb_auto_free char *sql =
			prb_format("SELECT abs(approx_count_distinct(x) - %ld) <= 0.0324 * %ld, "
				   "abs(approx_count_distinct('word ' || x) - %ld) <= 0.0324 * %ld "
				   "FROM n WHERE "
				   "i <= %ld",
				   counts[i], counts[i], counts[i], counts[i], counts[i]);

		expect(*state, sql, "1|1");
	}
}

/** Merged results of parts equal the result of all rows. */
static void test_merged(void **state)
{
	static const long counts[] = {100, 2000, 5000, 300000};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(counts); i++) {
		prb_auto_free char *sql = prb_format(
			"WITH m AS (SELECT * FROM n WHERE i <= %ld), p AS (SELECT "
			"approx_distinct_sketch(x) AS d, approx_quantile_sketch(x - 100) AS q FROM "
			"m GROUP BY i %% 7 = 0, i > %ld / 3) SELECT (SELECT "
			"approx_distinct_merge(d) "
			"FROM p) = (SELECT approx_count_distinct(x) FROM m), (SELECT "
			"approx_quantile_merge(q, 0.99) FROM p) = (SELECT approx_quantile(x - 100, "
			"0.99) FROM m)",
			counts[i], counts[i]);

		expect(*state, sql, "1|1");
	}
}

/** At most 0.5 % of the exact value, whatever the distribution is. */
static void test_quantiles(void **state)
{
	static const char *const values[] = {"x",
					     "-x",
					     "x - 150000",
					     "1.0 / (x + 1)",
					     "x % 3",
					     "x / 7.",
					     "x * x * 1e9",
					     "CAST('1e' || (x % 600 - 300) AS REAL)",
					     "1700000000 + x",
					     "i < 299000"};
	static const char *const fractions[] = {"0", "0.01", "0.5", "0.9", "0.99", "0.9999", "1"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(values); i++)
		for (size_t k = 0; k < PRB_ARRAY_SIZE(fractions); k++) {
			prb_auto_free char *sql = prb_format(
				"SELECT abs(approx_quantile(v, %s) - percentile_disc(v, %s)) <= "
				"0.00500001 * abs(percentile_disc(v, %s)) FROM (SELECT %s AS v "
				"FROM "
				"n LIMIT 20000)",
				fractions[k], fractions[k], fractions[k], values[i]);

			expect(*state, sql, "1");
		}
}

/** Sketches from other machines are untrusted. */
static void test_no_sketches(void **state)
{
	static const char *const distinct[] = {"''",
					       "'x'",
					       "7",
					       "'habc'",
					       "'hABCDEFGHIJKLMNOP'",
					       "'d0'",
					       "'d' || replace(hex(zeroblob(8192)), '0', 'z')",
					       "'h' || replace(hex(zeroblob(9000)), '0', 'a')",
					       "x'6400'"};
	static const char *const quantile[] = {"''",
					       "'x'",
					       "7",
					       "'v1 x'",
					       "'b1'",
					       "'b1:'",
					       "'b1:0'",
					       "'b1:-1'",
					       "'b2:1 1:1'",
					       "'b1:1 1:1'",
					       "'b999999:1'",
					       "'b1:1:1'",
					       "'b1:99999999999999'",
					       "'b1:1,2:1'",
					       "'b-99999999999999999999:1'",
					       "x'760031'"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(distinct); i++) {
		prb_auto_free char *sql =
			prb_format("SELECT approx_distinct_merge(%s)", distinct[i]);

		expect(*state, sql, "approx_distinct_merge(): this is no sketch");
	}
	for (size_t i = 0; i < PRB_ARRAY_SIZE(quantile); i++) {
		prb_auto_free char *sql =
			prb_format("SELECT approx_quantile_merge(%s, 0.5)", quantile[i]);

		expect(*state, sql, "approx_quantile_merge(): this is no sketch");
	}
	expect(*state, "SELECT approx_distinct_merge('h'), approx_quantile_merge('v', 0.5)",
	       "0|NULL");
	expect(*state,
	       "SELECT approx_quantile_merge('vnan 1 inf -inf', 0.5), "
	       "approx_quantile_merge('b-160000:1 0:1 160000:1', 0.5)",
	       "1.0|0.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_values_are_exact), cmocka_unit_test(test_many_distinct),
		cmocka_unit_test(test_merged), cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_no_sketches)};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "sql/dialect/partial.h"

static bool has_column(const void *context, const char *schema, const char *table,
		       const char *column, size_t length)
{
	static const char *const names[] = {"func", "file", "depth", "lineno"};

	(void)context;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(names) && !strcmp(schema, "s") && !strcmp(table, "t");
	     i++)
		if (strlen(names[i]) == length && !strncmp(names[i], column, length))
			return true;
	return false;
}

static void split(const char *sql, struct prb_partial *ret)
{
	struct prb_error *err = prb_partial_make(
		sql, &(struct prb_partial_table){.name = "x", .has_column = has_column}, ret);

	assert_null(err);
}

/** Each rank runs the second statement; the third one runs over their results. */
static void test_aggregates(void **state)
{
	static const char *const cases[][3] = {
		{"SELECT count(*) FROM global.s.t",
		 "SELECT _rank, _pid, count(*) AS c0 FROM s.t GROUP BY 1, 2",
		 "SELECT coalesce(sum(c0), 0) AS \"count(*)\" FROM global.\"x\""},
		{"SELECT func, avg(depth) AS mean FROM global.s.t WHERE file LIKE '%.py' GROUP BY "
		 "func "
		 "HAVING count(*) > 3 ORDER BY mean DESC, 1 LIMIT 5;",
		 "SELECT _rank, _pid, (func) AS c0, total(depth) AS c1, count(depth) AS c2, "
		 "count(*) AS "
		 "c3 FROM s.t WHERE (file LIKE '%.py') GROUP BY 1, 2, 3",
		 "SELECT c0 AS \"func\", (sum(c1) / nullif(sum(c2), 0)) AS \"mean\" FROM "
		 "global.\"x\" "
		 "GROUP BY c0 HAVING coalesce(sum(c3), 0) > 3 ORDER BY mean DESC , 1 LIMIT 5"},
		{"select _host, upper(func) as name, min(lineno), max(lineno) from global.s.t "
		 "group by "
		 "1, name",
		 "SELECT _rank, _pid, (upper(func)) AS c0, min(lineno) AS c1, max(lineno) AS c2 "
		 "FROM s.t "
		 "GROUP BY 1, 2, 3",
		 "SELECT _host AS \"_host\", c0 AS \"name\", min(c1) AS \"min(lineno)\", max(c2) "
		 "AS "
		 "\"max(lineno)\" FROM global.\"x\" GROUP BY _host, c0"},
		{"SELECT approx_count_distinct(func), round(approx_quantile(depth + 1, 0.99), 1) "
		 "AS q FROM global.s.t",
		 "SELECT _rank, _pid, approx_distinct_sketch(func) AS c0, "
		 "approx_quantile_sketch(depth + 1) AS c1 FROM s.t GROUP BY 1, 2",
		 "SELECT approx_distinct_merge(c0) AS \"approx_count_distinct(func)\", round ( "
		 "approx_quantile_merge(c1, 0.99) , 1 ) AS \"q\" FROM global.\"x\""},
		{"SELECT _rank, sum(depth) + 1, count(DISTINCT func) FROM global.s.t GROUP BY "
		 "_rank",
		 "SELECT _rank, _pid, sum(depth) AS c0, (func) AS c1 FROM s.t GROUP BY 1, 2, 4",
		 "SELECT _rank AS \"_rank\", sum(c0) + 1 AS \"sum(depth) + 1\", count(DISTINCT c1) "
		 "AS "
		 "\"count(DISTINCT func)\" FROM global.\"x\" GROUP BY _rank"},
	};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		prb_auto_partial struct prb_partial partial;

		split(cases[i][0], &partial);
		assert_non_null(partial.each);
		assert_string_equal(partial.each, cases[i][1]);
		assert_string_equal(partial.rest, cases[i][2]);
	}
}

/** Statements whose condition the ranks can test, and whether the first rows suffice. */
static void test_conditions(void **state)
{
	static const struct {
		const char *sql, *where;
		int64_t limit;
	} cases[] = {
		{"SELECT * FROM global.s.t", NULL, -1},
		{"SELECT func, _host FROM global.s.t WHERE depth = 0 LIMIT 7", "depth = 0", 7},
		{"SELECT func FROM global.s.t WHERE depth = 0 ORDER BY func LIMIT 7", "depth = 0",
		 -1},
		{"SELECT median(depth) FROM global.s.t WHERE depth > 1 LIMIT 7", "depth > 1", -1},
		{"SELECT func FROM global.s.t WHERE _host = 'a' LIMIT 7", NULL, -1},
		{"SELECT func FROM global.s.t WHERE _rank = 3 LIMIT 7", "_rank = 3", 7},
		{"SELECT func FROM global.s.t WHERE depth = (SELECT 1)", NULL, -1},
		{"SELECT DISTINCT func FROM global.s.t WHERE depth = 0", NULL, -1},
		{"SELECT func FROM global.s.t AS a WHERE depth = 0", NULL, -1},
		{"SELECT func FROM global.s.t, global.s.u WHERE depth = 0", NULL, -1},
		{"SELECT func FROM global.s.t WHERE depth = random()", NULL, -1},
		{"SELECT func FROM global.s.t WHERE depth = 0 LIMIT 7; SELECT 1", NULL, -1},
	};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		prb_auto_partial struct prb_partial partial;

		split(cases[i].sql, &partial);
		assert_null(partial.each);
		assert_int_equal(partial.limit, cases[i].limit);
		assert_true(!partial.where == !cases[i].where);
		if (partial.where)
			assert_string_equal(partial.where, cases[i].where);
	}
}

/** Ambiguous statements are not split. */
static void test_left_alone(void **state)
{
	static const char *const cases[] = {
		"SELECT func, count(*) FROM global.s.t",
		"SELECT func, count(*) FROM global.s.t GROUP BY file",
		"SELECT count(*) FILTER (WHERE depth = 0) FROM global.s.t",
		"SELECT count(*) OVER () FROM global.s.t",
		"SELECT group_concat(func) FROM global.s.t",
		"SELECT min(depth, lineno) FROM global.s.t",
		"SELECT upper(func) AS file, count(*) FROM global.s.t GROUP BY file",
		"SELECT count(*) n FROM global.s.t",
		"SELECT sum(_host) FROM global.s.t",
		"SELECT count(*) FROM global.s.t WHERE _role = 'a'",
		"SELECT count(*) FROM global.s.t UNION SELECT 1",
		"SELECT count(t.func) FROM global.s.t",
		"SELECT count(*) FROM global.s.t WHERE 'a",
		"SELECT FROM global.s.t",
		"SELECT count( FROM global.s.t",
		"",
	};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		prb_auto_partial struct prb_partial partial;

		split(cases[i], &partial);
		if (partial.each)
			fail_msg("%s: %s", cases[i], partial.each);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aggregates),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

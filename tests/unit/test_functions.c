/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sql/dialect/dialect.h"
#include "sql/functions/functions.h"
#include "base/regex.h"

/* 2026-01-02 03:04:05.25, a Friday */
static struct prb_functions_host host = {.now = 1767323045.25};

static int set_up(void **state)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
#ifdef SQLITE_DBCONFIG_FP_DIGITS
	/* Before SQLite 3.52, a number had no more digits as text. */
	sqlite3_db_config(db, SQLITE_DBCONFIG_FP_DIGITS, 15, NULL);
#endif
	assert_null(prb_functions_register(db, &host));
	assert_int_equal(
		sqlite3_exec(db,
			     "ATTACH ':memory:' AS information_schema;"
			     "CREATE TABLE information_schema.tables(table_schema, table_name,"
			     " table_type, comment);"
			     "INSERT INTO information_schema.tables VALUES"
			     " ('python', 'threads', 'BASE TABLE', 'Threads'),"
			     " ('python', 'memory', 'BASE TABLE', 'Memory'),"
			     " ('process', 'threads', 'BASE TABLE', 'Tasks');"
			     "CREATE TABLE information_schema.columns(table_schema, table_name,"
			     " column_name, ordinal_position, data_type, unit, is_hidden,"
			     " column_comment);"
			     "INSERT INTO information_schema.columns VALUES"
			     " ('python', 'threads', 'tid', 1, 'INTEGER', NULL, 'NO', 'Id'),"
			     " ('python', 'threads', 'cpu', 2, 'REAL', 's', 'NO', 'Time'),"
			     " ('process', 'threads', 'pid', 1, 'INTEGER', NULL, 'NO', 'Id');"
			     "CREATE TABLE information_schema.schemata(schema_name, comment);"
			     "INSERT INTO information_schema.schemata VALUES"
			     " ('python', 'P'), ('process', 'K');"
			     "CREATE TABLE information_schema.df_settings(name, value,"
			     " description);"
			     "INSERT INTO information_schema.df_settings VALUES"
			     " ('probing.sample_rate', '0.1', 'Rate'), ('a.b', '1', 'AB');"
			     "CREATE TABLE n(x, g);"
			     "INSERT INTO n VALUES (1, 'a'), (2, 'a'), (3, 'a'), (10, 'a'),"
			     " (NULL, 'a'), (5.5, 'b'), (-1, 'b'), (NULL, 'c');",
			     NULL, NULL, NULL),
		SQLITE_OK);
	*state = db;
	return 0;
}

static int tear_down(void **state)
{
	return sqlite3_close(*state);
}

/** Prepares like a session: the text itself or, if SQLite refuses it, its translation. */
static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	struct prb_dialect_statement statement;
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK)
		return stmt;
	assert_null(prb_dialect_next(sql, strlen(sql), 0, &statement));
	if (!statement.translation)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	if (sqlite3_prepare_v2(db, statement.translation, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", statement.translation, sqlite3_errmsg(db));
	prb_dialect_statement_deinit(&statement);
	return stmt;
}

/** Rows as text, cells divided by |, rows by line feeds; or "error: " and the message. */
static char *query(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = prepare(db, sql);
	struct prb_str s = {};
	int rc;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (s.length)
			prb_str_putc(&s, '\n');
		for (int i = 0; i < sqlite3_column_count(stmt); i++) {
			const char *text = (const char *)sqlite3_column_text(stmt, i);

			prb_str_printf(&s, "%s%s", i ? "|" : "", text ? text : "NULL");
		}
	}
	if (rc != SQLITE_DONE) {
		prb_str_truncate(&s, 0);
		prb_str_printf(&s, "error: %s", sqlite3_errmsg(db));
	}
	sqlite3_finalize(stmt);
	return prb_str_take(&s);
}

struct answer {
	const char *sql, *rows;
};

static void expect(sqlite3 *db, const struct answer *answers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		prb_auto_free char *rows = query(db, answers[i].sql);

		if (strcmp(rows, answers[i].rows))
			fail_msg("%s\ngives    %s\nwhere it is %s", answers[i].sql, rows,
				 answers[i].rows);
	}
}

#define EXPECT(answers) expect(*state, answers, PRB_ARRAY_SIZE(answers))

static void test_times(void **state)
{
	static const struct answer answers[] = {
		{"SELECT now()", "1767323045.25"},
		{"SELECT now() - interval '5 minutes'", "1767322745.25"},
		{"SELECT year(now()), month(now()), day(now()), hour(now()), minute(now()), "
		 "second(now()), dow(now())",
		 "2026|1|2|3|4|5|5"},
		{"SELECT hour(-1), second(-0.5), year(-1)", "23|59|1969"},
		{"SELECT hour(NULL), date_trunc('day', NULL), date_trunc(NULL, 1), time_text(NULL)",
		 "NULL|NULL|NULL|NULL"},
		{"SELECT year(1e300), year(-1e300), hour(9e999), time_text(253402300800)",
		 "NULL|NULL|NULL|NULL"},
		{"SELECT year('2026-05-06'), year('0')", "2026|1970"},
		{"SELECT hour('noon')", "error: 'noon' is not a time; write 2026-01-02 03:04:05 or "
					"seconds since the epoch"},
		{"SELECT extract(quarter FROM now()), extract(week FROM now()), extract(doy FROM "
		 "now()), extract(isodow FROM DATE '2026-01-04'), extract(second FROM now()), "
		 "extract(milliseconds FROM now()), extract(epoch FROM now())",
		 "1|1|2|7|5.25|5250.0|1767323045.25"},
		{"SELECT date_part('eon', 1)", "error: date_part(): there is no 'eon'; for example "
					       "'hour', 'day', 'week', 'month'"},
	};

	EXPECT(answers);
}

static void test_truncated_times(void **state)
{
	static const struct answer answers[] = {
		{"SELECT time_text(date_trunc('second', t)), time_text(date_trunc('minute', t)), "
		 "time_text(date_trunc('hour', t)), time_text(date_trunc('day', t)) FROM (SELECT "
		 "now() AS t)",
		 "2026-01-02T03:04:05Z|2026-01-02T03:04:00Z|2026-01-02T03:00:00Z|"
		 "2026-01-02T00:00:00Z"},
		{"SELECT time_text(date_trunc('week', t)), time_text(date_trunc('month', t)), "
		 "time_text(date_trunc('QUARTER', t)), time_text(date_trunc('years', t)) FROM "
		 "(SELECT TIMESTAMP '2024-02-29 12:00' AS t)",
		 "2024-02-26T00:00:00Z|2024-02-01T00:00:00Z|2024-01-01T00:00:00Z|"
		 "2024-01-01T00:00:00Z"},
		{"SELECT time_text(date_trunc('week', -1)), time_text(date_trunc('day', -1))",
		 "1969-12-29T00:00:00Z|1969-12-31T00:00:00Z"},
		{"SELECT date_trunc('dow', 1)", "error: date_trunc(): there is no 'dow'; for "
						"example 'hour', 'day', 'week', 'month'"},
		{"SELECT time_text(date_bin('15 min', now())), date_bin(10, 25, 3), date_bin(10, "
		 "-1)",
		 "2026-01-02T03:00:00Z|23.0|-10.0"},
		{"SELECT date_bin(0, 1)", "error: date_bin(): the interval must be over 0"},
		{"SELECT date_bin('1 month', 1)",
		 "error: 'month' has no fixed length in an interval; write days, for example "
		 "interval '30 days', or use date_trunc('month', timestamp)"},
		{"SELECT time_text(0.5), time_text(0.000001), time_text(-62167219200)",
		 "1970-01-01T00:00:00.500Z|1970-01-01T00:00:00.000001Z|0000-01-01T00:00:00Z"},
	};

	EXPECT(answers);
}

static void test_times_from_text(void **state)
{
	static const struct answer answers[] = {
		{"SELECT to_timestamp('2026-01-02T03:04:05.25Z') = now(), to_timestamp(' "
		 "2026-01-02 "
		 "04:04:05.25+0100 ') = now(), to_timestamp('2026-01-01 22:04:05.25 -05:00') = "
		 "now()",
		 "1|1|1"},
		{"SELECT '2026-01-02'::timestamp, '5 min'::interval, '90'::interval, "
		 "'2026-01-02 03:00'::date",
		 "1767312000.0|300.0|90.0|1767312000.0"},
		{"SELECT date_sub(now(), INTERVAL 5 MINUTE) = date_add(now(), '-300 s'), "
		 "date_add(NULL, 1)",
		 "1|NULL"},
		{"SELECT to_interval('1 hour 30 minutes'), to_interval('-1.5h'), to_interval('1 "
		 "day "
		 "ago'), to_interval('01:30'), to_interval(7)",
		 "5400.0|-5400.0|-86400.0|5400.0|7.0"},
	};
	static const char *const no_times[] = {
		"2026-02-30",
		"2026-13-01",
		"2026-00-01",
		"2026-01-02 24:00",
		"2026-01-02 00:60",
		"2026-01-02 00:00:61",
		"26-01-02",
		"2026-1-2",
		"2026-01-02x",
		"2026-01-02 03:04+1",
		"2026-01-02 03:04 CET",
		"",
		"2026-01-02 03:04:05.",
	};

	EXPECT(answers);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(no_times); i++) {
		prb_auto_free char *sql = prb_format("SELECT to_timestamp('%s')", no_times[i]);
		prb_auto_free char *rows = query(*state, sql);

		if (!strstr(rows, "is not a time"))
			fail_msg("%s: %s", no_times[i], rows);
	}
}

static void test_aggregates(void **state)
{
	static const struct answer answers[] = {
		{"SELECT g, median(x) FROM n GROUP BY g", "a|2.5\nb|2.25\nc|NULL"},
		{"SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x), percentile_disc(0.9) "
		 "WITHIN GROUP (ORDER BY x) FROM n WHERE g = 'a'",
		 "7.9|10"},
		{"SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC), percentile_disc(0.6) "
		 "WITHIN GROUP (ORDER BY x DESC NULLS LAST) FROM n WHERE g = 'a'",
		 "1.3|2"},
		{"SELECT percentile_disc(x, 0.5), percentile_disc(x, 0), percentile_disc(x, 1), "
		 "percentile_cont(x, 0), percentile_cont(x, 1) FROM n WHERE g = 'b'",
		 "-1.0|-1.0|5.5|-1.0|5.5"},
		{"SELECT median(x), percentile_cont(x, 0.5), stddev(x), var_pop(x) FROM n WHERE 0",
		 "NULL|NULL|NULL|NULL"},
		{"SELECT percentile_cont(x, NULL) FROM n", "NULL"},
		{"SELECT percentile_cont(x, 1.1) FROM n",
		 "error: percentile_cont(): the fraction must be from 0 to 1"},
		{"SELECT percentile_cont(x, 'half') FROM n",
		 "error: percentile_cont(): the fraction must be from 0 to 1"},
		{"SELECT median(g) FROM n", "error: median(): 'a' is not a number"},
		{"SELECT stddev(g) FROM n", "error: stddev(): 'a' is not a number"},
		{"SELECT median('7'), median(9e999), median(9007199254740993)",
		 "7.0|NULL|9.00719925474099e+15"},
		{"SELECT percentile_disc(v, 1) FROM (SELECT 9223372036854775807 AS v UNION ALL "
		 "SELECT -9223372036854775808)",
		 "9.22337203685478e+18"},
		{"SELECT var_pop(x), variance(x), var_samp(x), round(stddev_pop(x), 6), "
		 "stddev(x) = stddev_samp(x) FROM n WHERE g = 'a'",
		 "12.5|16.6666666666667|16.6666666666667|3.535534|1"},
		{"SELECT stddev(5), stddev_pop(5), stddev(NULL)", "NULL|0.0|NULL"},
		/* The mean is large, the spread small: the textbook formula fails. */
		{"SELECT var_pop(v) FROM (SELECT 1e9 + 4 AS v UNION ALL SELECT 1e9 + 7 UNION ALL "
		 "SELECT 1e9 + 13 UNION ALL SELECT 1e9 + 16)",
		 "22.5"},
		{"SELECT stddev(v), median(v) FROM (SELECT 1e308 AS v UNION ALL SELECT -1e308)",
		 "NULL|0.0"},
		{"SELECT group_concat(m) FROM (SELECT median(x) OVER (ORDER BY x ROWS 1 PRECEDING) "
		 "AS m FROM n WHERE g = 'a' AND x IS NOT NULL)",
		 "1.0,1.5,2.5,6.5"},
		{"SELECT group_concat(m) FROM (SELECT var_pop(x) OVER (ORDER BY x ROWS 1 "
		 "PRECEDING) "
		 "AS m FROM n WHERE g = 'a' AND x IS NOT NULL)",
		 "0.0,0.25,0.25,12.25"},
		{"SELECT group_concat(m) FROM (SELECT percentile_disc(x, 0.5) OVER (PARTITION BY "
		 "g) "
		 "AS m FROM n WHERE x IS NOT NULL)",
		 "2,2,2,2,-1.0,-1.0"},
		{"SELECT stddev(x) FILTER (WHERE g = 'z')::text FROM n", "NULL"},
	};

	EXPECT(answers);
}

/**
 * A percentile of many values in bad orders equals that of sorting, and takes no quadratic time.
 */
static void test_percentile_orders(void **state)
{
	static const struct answer answers[] = {
		{"WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300000) "
		 "SELECT median(i), median(-i), median(i % 2), percentile_disc(i % 1000, 0.25), "
		 "percentile_disc(i * 7919 % 300007, 0.5), median(1) FROM c",
		 "150000.5|-150000.5|0.5|249|150000|1.0"},
	};

	EXPECT(answers);
}

static void test_percentile_bound(void **state)
{
	static const struct answer answers[] = {
		{"WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < "
		 "8388609) "
		 "SELECT median(i) FROM c",
		 "error: median(): over 8388608 values in one group; group by more, or take a part "
		 "of the rows"},
	};

	EXPECT(answers);
}

/** Aggregates allocate SQLite's memory, which a session bounds. */
static void test_percentile_memory(void **state)
{
	static const struct answer answers[] = {
		{"WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < "
		 "1000000) "
		 "SELECT median(i) FROM c",
		 "error: out of memory"},
	};

	sqlite3_hard_heap_limit64(sqlite3_memory_used() + 4 * 1024 * 1024);
	EXPECT(answers);
	sqlite3_hard_heap_limit64(0);
}

static void test_regexes(void **state)
{
	static const struct answer answers[] = {
		{"SELECT 'train_step' ~ '^train', 'x' ~ 'y', 'x' !~ 'y', 'ABC' ~* 'b', 'ABC' !~* "
		 "'b'",
		 "1|0|1|1|0"},
		{"SELECT 'abc' REGEXP 'b.', regexp('b', 'abc'), NULL ~ 'x', 'x' ~ NULL, 12 ~ '^1'",
		 "1|1|NULL|NULL|1"},
		{"SELECT count(*) FROM n WHERE g ~ '[ab]'", "7"},
		{"SELECT group_concat(g ~ lower(g)) FROM n", "1,1,1,1,1,1,1,1"},
		{"SELECT regexp_like('aB', 'AB', 'i'), regexp_like('aB', 'AB', 'ic'), "
		 "regexp_like('a', 'A'), regexp_like('a', NULL)",
		 "1|0|0|NULL"},
		{"SELECT group_concat(regexp_like('A', 'a', f)) FROM (SELECT 'i' AS f UNION ALL "
		 "SELECT 'c' UNION ALL SELECT 'i')",
		 "1,0,1"},
		{"SELECT regexp_like('a', 'a', 'q')", "error: 'q' is not a flag of a regular "
						      "expression; use i, c, m, s, x or g"},
		{"SELECT 'a' ~ 'a('", "error: bad regular expression /a(/: missing closing "
				      "parenthesis at character 2"},
		{"SELECT regexp_substr('layer.12.weight', '(\\d+)\\.(\\w+)'), "
		 "regexp_substr('layer.12.weight', '(\\d+)\\.(\\w+)', 2), regexp_substr('a', 'b'), "
		 "regexp_substr('a', 'a', 1), regexp_substr('a', 'a', -1)",
		 "12.weight|weight|NULL|NULL|NULL"},
		{"SELECT regexp_replace('a1b22', '\\d+', '#'), regexp_replace('a1b22', '\\d+', "
		 "'#', "
		 "'g'), regexp_replace('a1b22', '([a-z])(\\d)', '\\2\\1<\\&>\\\\', 'g')",
		 "a#b22|a#b#|1a<a1>\\2b<b2>\\2"},
		{"SELECT regexp_replace('abc', 'x*', '-', 'g'), regexp_replace('', '', 'x'), "
		 "regexp_replace('h\xc3\xa9', '', '.', 'g'), regexp_replace('x', 'y', 'z')",
		 "-a-b-c-|x|.h.\xc3\xa9.|x"},
		/* Bytes that are not UTF-8 match nothing and do no harm. */
		{"SELECT CAST(x'61ff62' AS TEXT) ~ 'b', CAST(x'61ff62' AS TEXT) ~ 'a.b'", "1|0"},
	};

	EXPECT(answers);
}

static void test_texts(void **state)
{
	static const struct answer answers[] = {
		{"SELECT bytes_text(0), bytes_text(1023), bytes_text(1024), bytes_text(1572864), "
		 "bytes_text(-2048), bytes_text(1048575)",
		 "0 B|1023 B|1.0 KiB|1.5 MiB|-2.0 KiB|1.0 MiB"},
		{"SELECT bytes_text(9223372036854775807), bytes_text(9e999), bytes_text(NULL)",
		 "8.0 EiB|NULL|NULL"},
		{"SELECT bytes_text('much')", "error: bytes_text(): 'much' is not a number"},
		{"SELECT duration_text(0.0000384), duration_text(130), duration_text(-3), "
		 "duration_text(1e300), duration_text(NULL)",
		 "38 \xc2\xb5s|2 m 10 s|-3.0 s|NULL|NULL"},
		{"SELECT error('no way')", "error: no way"},
		{"SELECT error(NULL)", "NULL"},
		{"SELECT count(*) FROM n WHERE x < 100 OR x IS NULL OR error('over')", "8"},
	};

	EXPECT(answers);
}

static void test_show(void **state)
{
	static const struct answer answers[] = {
		{"SHOW TABLES", "process|threads|BASE TABLE|Tasks\n"
				"python|memory|BASE TABLE|Memory\n"
				"python|threads|BASE TABLE|Threads"},
		{"SHOW TABLES LIKE 'mem%'", "python|memory|BASE TABLE|Memory"},
		{"SHOW TABLES IN PROCESS", "process|threads|BASE TABLE|Tasks"},
		{"DESCRIBE python.threads", "tid|INTEGER|NULL|NO|Id\ncpu|REAL|s|NO|Time"},
		{"DESC \"PYTHON\".threads", "tid|INTEGER|NULL|NO|Id\ncpu|REAL|s|NO|Time"},
		{"describe threads", "process|pid|INTEGER|NULL|NO|Id\n"
				     "python|tid|INTEGER|NULL|NO|Id\n"
				     "python|cpu|REAL|s|NO|Time"},
		{"SHOW COLUMNS FROM threads FROM python LIKE 'c%'", "cpu|REAL|s|NO|Time"},
		{"DESCRIBE python.nothing", "error: no such table: python.nothing"},
		{"SHOW COLUMNS IN nothing", "error: no such table: nothing"},
		{"SHOW DATABASES", "process|K\npython|P"},
		{"SHOW SCHEMAS LIKE 'py%'", "python|P"},
		{"SHOW ALL", "a.b|1|AB\nprobing.sample_rate|0.1|Rate"},
		{"SHOW ALL LIKE 'probing.%'", "probing.sample_rate|0.1|Rate"},
		{"SHOW probing.sample_rate", "probing.sample_rate|0.1|Rate"},
		{"SHOW probing.nothing",
		 "error: there is no setting 'probing.nothing'; SHOW ALL lists them"},
	};

	EXPECT(answers);
}

/** Repeats @p part until @p size bytes are full, between @p before and @p after. */
static char *repeated(const char *before, const char *part, const char *after, size_t size)
{
	struct prb_str s = {};

	prb_str_puts(&s, before);
	while (s.length < size)
		prb_str_puts(&s, part);
	prb_str_puts(&s, after);
	return prb_str_take(&s);
}

static double seconds_of_processor(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/** Matches, and prints the time; an error must have a message. */
static void match_hostile(struct prb_regex *regex, const char *pattern, const char *text)
{
	double start = seconds_of_processor(), took;
	struct prb_error *err;
	bool found;

	err = prb_regex_match(regex, text, strlen(text), 0, &found);
	took = seconds_of_processor() - start;
	print_message("%-40.40s %7.1f ms  %.80s\n", pattern, took * 1e3,
		      err     ? strrchr(err->message, ':')
		      : found ? "found"
			      : "not found");
	/* Sanitizers make it slower. */
	assert_true(took < 3);
	if (err)
		assert_int_equal(err->code, PRB_ERROR_USAGE);
	prb_error_destroy(err);
}

/** Enough matches to switch to machine code, for short texts and for long ones. */
static void warm_up(struct prb_regex *regex)
{
	char text[3000];
	bool found;

	memset(text, '\n', sizeof(text));
	for (int i = 0; i < 20; i++) {
		prb_error_destroy(prb_regex_match(regex, text, 1, 0, &found));
		prb_error_destroy(prb_regex_match(regex, text, sizeof(text), 0, &found));
	}
}

/** Any pattern and text give an answer or an error soon, also with machine code. */
static void test_hostile_regexes(void **state)
{
	enum { KIB = 1024, MIB = 1024 * 1024 };
	struct {
		char *pattern, *text;
	} cases[] = {
		{strdup("^(a+)+$"), repeated("", "a", "!", 64)},
		{strdup("(x+x+)+[yz]"), repeated("", "x", "", 4 * KIB)},
		{strdup("(.*)*\\1{500}[bc]"), repeated("", "a", "", KIB)},
		{strdup("(?:(?=(a+))a)*[bc]"), repeated("", "a", "", 20 * KIB)},
		{strdup("(.|\\n)*[xy]"), repeated("", "a", "", MIB)},
		{strdup("^(?:a?){60}a{60}$"), repeated("", "a", "", 60)},
		{strdup("(?R)?a|(?R)"), repeated("", "a", "", KIB)},
		{strdup("(a(?1)?b)*$"), repeated("", "a", "", 100 * KIB)},
		{strdup("(?<=(?:a{0,200}b){1,200})c"), repeated("", "a", "", 10 * KIB)},
		{strdup("(?i)\\p{L}+(?:\\p{N}|\\w)*\\d"), repeated("", "\xc3\xa4", "", 200 * KIB)},
		{strdup(".*.*.*.*.*[=;]"), repeated("", "x", "", 20 * KIB)},
		{strdup("(*LIMIT_MATCH=9)(*NO_JIT)^(a+)+$"), repeated("", "a", "!", 64)},
		{strdup("\\C"), strdup("a")},
		{repeated("", "a", "", MIB), strdup("a")},
		{repeated("", "(", "", 4000), strdup("a")},
		{repeated("", "(a|", "", 500), strdup("a")},
		{repeated("", "[a-z0-9\\p{Lu}]+?", "", 4000), strdup("a")},
		{repeated("(?i)", "[^\\x{100}-\\x{10ffff}k]", "", 4000), strdup("a")},
		{strdup("((((((a{1,99}){1,99}){1,99}){1,99}){1,99}){1,99})"), strdup("a")},
		{repeated("", "(?<n>a)|", "", 4000), strdup("a")},
		{strdup("x{65535}{65535}"), strdup("a")},
	};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		double start = seconds_of_processor();
		struct prb_regex *regex = NULL;
		struct prb_error *err =
			prb_regex_compile(cases[i].pattern, strlen(cases[i].pattern), 0, &regex);

		/* Without limits it would take hours; an emulated machine takes some seconds. */
		assert_true(seconds_of_processor() - start < 60);
		if (err) {
			assert_int_equal(err->code, PRB_ERROR_USAGE);
			print_message("%-40.40s %7.1f ms  %.80s\n", cases[i].pattern,
				      (seconds_of_processor() - start) * 1e3,
				      strrchr(err->message, ':'));
			prb_error_destroy(err);
		} else {
			match_hostile(regex, cases[i].pattern, cases[i].text);
			warm_up(regex);
			match_hostile(regex, cases[i].pattern, cases[i].text);
		}
		prb_regex_destroy(regex);
		free(cases[i].pattern);
		free(cases[i].text);
	}
}

static bool cancel(void *context)
{
	return ++*(int *)context > 3;
}

static void test_cancel(void **state)
{
	static const struct answer answers[] = {
		{"SELECT regexp_replace('aaaaaaaa', 'a', 'b', 'g')", "error: interrupted"},
		{"SELECT regexp_replace('aaaaaaaa', 'a', 'b')", "error: interrupted"},
	};
	int asked = 0;

	host.cancelled = cancel;
	host.context = &asked;
	EXPECT(answers);
	host.cancelled = NULL;
}

static void test_long_result(void **state)
{
	static const struct answer answers[] = {
		{"SELECT regexp_replace(printf('%.*c', 900, 'a'), 'a', '\\&\\&', 'g')",
		 "error: regexp_replace(): the result is over 1000 bytes"},
	};
	int limit = sqlite3_limit(*state, SQLITE_LIMIT_LENGTH, 1000);

	EXPECT(answers);
	sqlite3_limit(*state, SQLITE_LIMIT_LENGTH, limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_truncated_times),
		cmocka_unit_test(test_times_from_text),
		cmocka_unit_test(test_aggregates),
		cmocka_unit_test(test_percentile_orders),
		cmocka_unit_test(test_percentile_bound),
		cmocka_unit_test(test_percentile_memory),
		cmocka_unit_test(test_regexes),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_show),
		cmocka_unit_test(test_hostile_regexes),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_long_result),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

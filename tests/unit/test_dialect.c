/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/dialect/dialect.h"
#include "sql/dialect/tokens.h"

static struct prb_dialect_statement next(const char *script, size_t at)
{
	struct prb_dialect_statement statement;
	struct prb_error *err = prb_dialect_next(script, strlen(script), at, &statement);

	assert_null(err);
	return statement;
}

struct pair {
	const char *typed, *translated; /* NULL: unchanged */
};

static void expect(const struct pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct prb_dialect_statement statement = next(pairs[i].typed, 0);

		if (statement.refusal)
			fail_msg("%s: %s", pairs[i].typed, statement.refusal->message);
		assert_int_equal(statement.kind, PRB_STATEMENT_SQL);
		if (pairs[i].translated && !statement.translation)
			fail_msg("%s: not translated", pairs[i].typed);
		if (pairs[i].translated)
			assert_string_equal(statement.translation, pairs[i].translated);
		else
			assert_null(statement.translation);
		prb_dialect_statement_deinit(&statement);
	}
}

#define EXPECT(pairs) expect(pairs, PRB_ARRAY_SIZE(pairs))

static void test_tokens(void **state)
{
	static const struct {
		const char *text;
		enum prb_token_kind kind;
		size_t length;
	} cases[] = {
		{" \n\tx", PRB_TOKEN_SPACE, 3},
		{"-- a\nb", PRB_TOKEN_COMMENT, 4},
		{"/* a */b", PRB_TOKEN_COMMENT, 7},
		{"/*/ */", PRB_TOKEN_COMMENT, 6},
		{"/* a", PRB_TOKEN_COMMENT, 4},
		{"/*", PRB_TOKEN_OPERATOR, 1},
		{"/ 2", PRB_TOKEN_OPERATOR, 1},
		{"a$1.b", PRB_TOKEN_WORD, 3},
		{"h\xc3\xa4user ", PRB_TOKEN_WORD, 7},
		{"'it''s' x", PRB_TOKEN_STRING, 7},
		{"'open", PRB_TOKEN_BAD, 5},
		{"\"a\"\"b\"c", PRB_TOKEN_NAME, 6},
		{"`a b`", PRB_TOKEN_NAME, 5},
		{"[a]]", PRB_TOKEN_NAME, 3},
		{"x'0aFF'", PRB_TOKEN_BLOB, 7},
		{"x'0a1'", PRB_TOKEN_BAD, 6},
		{"x '0a'", PRB_TOKEN_WORD, 1},
		{"12", PRB_TOKEN_NUMBER, 2},
		{"1.5e-3+", PRB_TOKEN_NUMBER, 6},
		{"1.e", PRB_TOKEN_BAD, 3},
		{".5", PRB_TOKEN_NUMBER, 2},
		{"0x1F", PRB_TOKEN_NUMBER, 4},
		{"5min", PRB_TOKEN_BAD, 4},
		{"?12x", PRB_TOKEN_PARAMETER, 3},
		{":a+", PRB_TOKEN_PARAMETER, 2},
		{"@a$", PRB_TOKEN_PARAMETER, 3},
		{"$a::b(c)d", PRB_TOKEN_PARAMETER, 8},
		{"::int", PRB_TOKEN_OPERATOR, 2},
		{": a", PRB_TOKEN_BAD, 1},
		{"!~*a", PRB_TOKEN_OPERATOR, 3},
		{"~*a", PRB_TOKEN_OPERATOR, 2},
		{"->>'a'", PRB_TOKEN_OPERATOR, 3},
		{"||", PRB_TOKEN_OPERATOR, 2},
		{"!a", PRB_TOKEN_BAD, 1},
		{";", PRB_TOKEN_SEMICOLON, 1},
		{"\x01\x02", PRB_TOKEN_BAD, 1},
	};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		struct prb_token token = prb_token_at(cases[i].text, strlen(cases[i].text), 0);

		if (token.kind != cases[i].kind || token.end != cases[i].length)
			fail_msg("%s: kind %d, %zu bytes", cases[i].text, token.kind, token.end);
	}
}

static void test_split(void **state)
{
	const char *script = "\n; -- none;\n SELECT ';' , \";\" /* ; */ ; ;SELECT 2;x";
	static const char *const texts[] = {"SELECT ';' , \";\"", "SELECT 2", "x"};
	size_t at = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct prb_dialect_statement statement = next(script, at);

		assert_int_equal(statement.end - statement.start, strlen(texts[i]));
		assert_memory_equal(script + statement.start, texts[i], strlen(texts[i]));
		assert_null(statement.translation);
		at = statement.next;
		prb_dialect_statement_deinit(&statement);
	}
	assert_int_equal(at, strlen(script));
	assert_int_equal(next(script, at).kind, PRB_STATEMENT_NONE);
	assert_int_equal(next(" -- nothing\n;;", 0).kind, PRB_STATEMENT_NONE);
	assert_int_equal(next("", 0).kind, PRB_STATEMENT_NONE);
}

static void test_nul(void **state)
{
	static const char script[] = "SELECT 1\0; DROP";
	struct prb_dialect_statement statement;
	struct prb_error *err = prb_dialect_next(script, sizeof(script) - 1, 0, &statement);

	(void)state;
	assert_int_equal(err->code, PRB_ERROR_USAGE);
	prb_error_destroy(err);
}

static void test_plain(void **state)
{
	static const struct pair pairs[] = {
		{"SELECT * FROM python.backtrace WHERE tid = 4242"},
		{"SELECT interval, timestamp, extract FROM show"},
		{"SELECT t.interval '5 min', x AS interval FROM t"},
		{"SELECT 'interval ''5 min''', \"a ~ b\" -- x ~ y\nFROM t"},
		{"SELECT ~a, -~b, (~c), 1 + ~2 WHERE NOT ~x"},
		{"SELECT $a::b, :c::d(e)"},
		{"SELECT timestamp 'when' FROM t"},
		{"SELECT x LIMIT 5 OFFSET 3"},
		{"SELECT percentile_cont(x, 0.5), extract(a, b)"},
		{"WITH t AS (SELECT 1) SELECT * FROM t"},
		{"SELECT 'open"},
		{"a ~"},
		{"~"},
		{"::int"},
		{")(::"},
	};

	(void)state;
	EXPECT(pairs);
}

static void test_interval(void **state)
{
	static const struct pair pairs[] = {
		{"SELECT * FROM t WHERE timestamp > now() - interval '5 min'",
		 "SELECT * FROM t WHERE timestamp > now() - 300"},
		{"x - INTERVAL '1 hour 30 minutes'", "x - 5400"},
		{"CURRENT_TIMESTAMP - interval '1s'", "CURRENT_TIMESTAMP - 1"},
		{"x - interval'90s'", "x - 90"},
		{"x - interval '90s'AND y", "x - 90 AND y"},
		{"x-interval '-5 min'", "x-(-300)"},
		{"x - interval '1 day ago'", "x - (-86400)"},
		{"x - INTERVAL 5 MINUTE AND y", "x - 300 AND y"},
		{"x - INTERVAL 1.5 hours", "x - 5400"},
		{"x - INTERVAL - 2 DAY", "x - (-172800)"},
		{"x - interval '5' minute", "x - 300"},
		{"x - interval '5' foo", "x - 5 foo"},
		{"x - interval '01:30:00.5'", "x - 5400.5"},
		{"x - interval '0.3 s'", "x - 0.3"},
		{"x - interval '250 ms'", "x - 0.25"},
		{"x - interval '2 weeks'", "x - 1209600"},
		{"x - interval /* so long */ '1h' -- c\n + 1", "x - 3600 -- c\n + 1"},
	};

	(void)state;
	EXPECT(pairs);
}

static void test_operators(void **state)
{
	static const struct pair pairs[] = {
		{"SELECT a ~ 'x'", "SELECT a REGEXP 'x'"},
		{"a!~'x'", "a NOT REGEXP 'x'"},
		{"f(a) ~* b", "f(a) REGEXP '(?i)' || b"},
		{"t.\"a\" !~* ?1", "t.\"a\" NOT REGEXP '(?i)' || ?1"},
		{"WHERE ~a ~ b AND ~c", "WHERE ~a REGEXP b AND ~c"},
		{"a ILIKE 'x%' OR b NOT ILIKE 'y'", "a LIKE 'x%' OR b NOT LIKE 'y'"},
		{"t > TIMESTAMP '2026-01-02 03:04:05'", "t > 1767323045"},
		{"t > timestamp '2026-01-02T03:04:05.25+01:00'", "t > 1767319445.25"},
		{"t > DATE '1969-12-31'", "t > (-86400)"},
		{"EXTRACT(hour FROM ts)", "hour(ts)"},
		{"extract(SECOND from now() - interval '1 s')", "date_part('SECOND', now() - 1)"},
		{"extract(dow from extract(epoch from t))", "dow(date_part('epoch', t))"},
	};

	(void)state;
	EXPECT(pairs);
}

static void test_casts(void **state)
{
	static const struct pair pairs[] = {
		{"SELECT x::int", "SELECT CAST(x AS INTEGER)"},
		{"-1.5::double precision+2", "- CAST(1.5 AS REAL) +2"},
		{"a.b.\"c\"::varchar(20) || 'x'", "CAST(a.b.\"c\" AS TEXT) || 'x'"},
		{"(a + b)::real / c", "CAST((a + b) AS REAL) / c"},
		{"sum(x)::int::text", "CAST(CAST(sum(x) AS INTEGER) AS TEXT)"},
		{"1 + s.f(x::int)::text", "1 + CAST(s.f(CAST(x AS INTEGER)) AS TEXT)"},
		{"count(*) FILTER (WHERE a) OVER (w)::real",
		 "CAST(count(*) FILTER (WHERE a) OVER (w) AS REAL)"},
		{"CASE WHEN CASE x WHEN 1 THEN 2 END THEN 1 END::int",
		 "CAST(CASE WHEN CASE x WHEN 1 THEN 2 END THEN 1 END AS INTEGER)"},
		{"x IN (1)::int", "x IN CAST((1) AS INTEGER)"},
		{"'2026-01-02'::timestamp", "to_timestamp('2026-01-02')"},
		{"t::date", "date_trunc('day', to_timestamp(t))"},
		{"interval '5 min'::int", "CAST(300 AS INTEGER)"},
		{"'5 min'::interval", "to_interval('5 min')"},
	};

	(void)state;
	EXPECT(pairs);
}

static void test_percentile(void **state)
{
	static const struct pair pairs[] = {
		{"SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x) FROM t",
		 "SELECT percentile_cont(x, 0.9) FROM t"},
		{"percentile_disc(?) within group (order by f(a, b) DESC NULLS LAST)",
		 "percentile_disc(f(a, b), ?, 'desc')"},
		{"percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(hour from t) ASC)::int",
		 "CAST(percentile_cont(hour(t), 0.5) AS INTEGER)"},
		{"percentile_cont(0.5) WITHIN GROUP (ORDER BY a, b)"},
		{"percentile_cont(0.5) WITHIN GROUP (ORDER BY)"},
		{"percentile_cont() WITHIN GROUP (ORDER BY a)"},
	};

	(void)state;
	EXPECT(pairs);
}

static void test_quoted_tables(void **state)
{
	static const struct pair pairs[] = {
		{"SELECT \"python.threads\".tid FROM \"Python.Threads\"",
		 "SELECT python.threads .tid FROM Python.Threads"},
		{"SELECT * FROM [process.maps], `cpu.tasks`",
		 "SELECT * FROM process.maps, cpu.tasks"},
		{"SELECT * FROM \"python.nothing\"", NULL},
		{"SELECT \"threads\", 'python.threads', \"\", \".\"", NULL},
	};

	(void)state;
	EXPECT(pairs);
}

static void test_show(void **state)
{
	static const struct pair pairs[] = {
		{"SHOW TABLES FROM python LIKE 't%'",
		 "SELECT table_schema, table_name, table_type, comment FROM "
		 "information_schema.tables WHERE table_schema = 'python' COLLATE NOCASE AND "
		 "table_name LIKE 't%' ORDER BY table_schema, table_name"},
		{"show schemas", "SELECT schema_name, comment FROM information_schema.schemata "
				 "ORDER BY schema_name"},
		{"SHOW ALL", "SELECT name, value, description FROM information_schema.df_settings "
			     "ORDER BY name"},
		{"DESCRIBE \"o'clock\".`a.b()`",
		 "SELECT column_name, data_type, unit, is_hidden, column_comment FROM (SELECT "
		 "coalesce(max(table_name), error('no such table: o''clock.a.b()')) FROM "
		 "information_schema.tables WHERE table_name = 'a.b()' COLLATE NOCASE AND "
		 "table_schema = 'o''clock' COLLATE NOCASE) CROSS JOIN information_schema.columns "
		 "WHERE table_name = 'a.b()' COLLATE NOCASE AND table_schema = 'o''clock' COLLATE "
		 "NOCASE ORDER BY table_schema, ordinal_position"},
	};

	(void)state;
	EXPECT(pairs);
}

static void test_set(void **state)
{
	static const struct {
		const char *typed, *key, *value;
	} cases[] = {
		{"SET probing.sample_rate = 0.1;", "probing.sample_rate", "0.1"},
		{"set a.\"b c\" to 'it''s'", "a.b c", "it's"},
		{"SET probing.query.timeout=30s", "probing.query.timeout", "30s"},
		{"SET a = -1.5", "a", "-1.5"},
		{"SET a = on", "a", "on"},
		{"SET a = /tmp/x-1", "a", "/tmp/x-1"},
		{"SET a = ''", "a", ""},
	};
	static const char *const wrong[] = {
		"SET",	       "SET a",	     "SET a =",	      "SET = 1",   "SET a b",
		"SET a = b c", "SET a. = 1", "SET a = 'b' c", "SET a = 'b"};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		struct prb_dialect_statement statement = next(cases[i].typed, 0);

		assert_int_equal(statement.kind, PRB_STATEMENT_SET);
		assert_string_equal(statement.key, cases[i].key);
		assert_string_equal(statement.value, cases[i].value);
		prb_dialect_statement_deinit(&statement);
	}
	for (size_t i = 0; i < PRB_ARRAY_SIZE(wrong); i++) {
		struct prb_dialect_statement statement = next(wrong[i], 0);

		if (statement.kind != PRB_STATEMENT_SQL || !statement.refusal)
			fail_msg("%s", wrong[i]);
		prb_dialect_statement_deinit(&statement);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		const char *typed, *message;
		size_t at;
	} cases[] = {
		{"x - interval '1 month'", "'month' has no fixed length in an interval", 4},
		{"x - INTERVAL 2 YEARS", "'YEARS' has no fixed length in an interval", 4},
		{"x - interval '1' month", "'month' has no fixed length in an interval", 4},
		{"x - interval '5 mintues'", "'mintues' is not a unit of an interval", 4},
		{"x - interval '5 1 hour'", "'5 1 hour' is no interval", 4},
		{"x - interval ''", "'' is no interval", 4},
		{"x::json", "cannot cast to 'json'", 3},
		{"x::", "cannot cast to ''", 0},
		{"extract(eon FROM t)", "cannot extract 'eon' from a time", 8},
		{"SHOW a b", "SHOW what?", 0},
		{"SHOW", "SHOW what?", 0},
		{"DESCRIBE a b", "DESCRIBE takes the name of a table", 0},
		{"SET a b", "this is not how a setting is set", 6},
	};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		struct prb_dialect_statement statement = next(cases[i].typed, 0);

		assert_non_null(statement.refusal);
		assert_null(statement.translation);
		assert_string_equal(statement.refusal->message, cases[i].message);
		assert_int_equal(statement.refused_at, cases[i].at);
		prb_dialect_statement_deinit(&statement);
	}
}

/** Each of the user's words is located at its original place. */
static void test_locate(void **state)
{
	const char *script =
		"SELECT 1;\nSELECT x::int, bad1, percentile_cont(bad2) WITHIN GROUP (ORDER "
		"BY bad3), a ~ bad4 WHERE t > now() - interval '5 min' AND bad5";
	struct prb_dialect_statement statement = next(script, 9);
	char name[] = "bad0";

	(void)state;
	assert_non_null(statement.translation);
	for (name[3] = '1'; name[3] <= '5'; name[3]++) {
		size_t there = strstr(statement.translation, name) - statement.translation;

		for (size_t i = 0; i < 4; i++)
			assert_int_equal(prb_dialect_locate(&statement, there + i),
					 strstr(script, name) - script + i);
	}
	size_t there = strstr(statement.translation, "300") - statement.translation;

	assert_int_equal(prb_dialect_locate(&statement, there + 1),
			 strstr(script, "interval") - script);
	assert_int_equal(prb_dialect_locate(&statement, strlen(statement.translation)),
			 strlen(script));
	assert_int_equal(prb_dialect_locate(&statement, SIZE_MAX / 2), strlen(script));
	prb_dialect_statement_deinit(&statement);
}

static void expect_point(const char *script, size_t offset, const char *picture)
{
	prb_auto_str struct prb_str s = {};

	prb_script_point(&s, script, strlen(script), offset);
	assert_string_equal(prb_str_text(&s), picture);
}

static void test_point(void **state)
{
	struct prb_script_position position = prb_script_position("a\n\xc3\xa4\tb", 6, 5);

	(void)state;
	assert_int_equal(position.line, 2);
	assert_int_equal(position.column, 3);
	expect_point("SELECT x", 7, "  SELECT x\n         ^");
	expect_point("SELECT\n\tx FROM\r\ny", 8, "   x FROM\n   ^");
	/* Wide characters take two columns, combining ones none, controls are escaped. */
	expect_point("'\xe6\xbc\xa2''e\xcc\x81' x", 11,
		     "  '\xe6\xbc\xa2''e\xcc\x81' x\n          ^");
	expect_point("'\x1b[0m' x", 7, "  '\\x1b[0m' x\n            ^");
	expect_point("", 0, "  \n  ^");
	expect_point("x\n", 1, "  x\n   ^");
	expect_point("x", 99, "  x\n   ^");
	/* A long line is cut around the marked place. */
	expect_point(
		"SELECT aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, x FROM "
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
		75,
		"  \xe2\x80\xa6"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, x FROM "
		"bbbbbbbbbbbbbbbb\xe2\x80\xa6\n"
		"                                                     ^");
}

static void test_error(void **state)
{
	const char *script = "SELECT 1;\nSELEC 2";
	struct prb_error *err = prb_error_create(PRB_ERROR_USAGE, "syntax error");

	(void)state;
	err = prb_script_error(prb_error_hint(err, "mind the gap"), script, strlen(script), 10);
	assert_string_equal(err->message, "line 2, column 1: syntax error");
	assert_string_equal(err->hint, "  SELEC 2\n  ^\nmind the gap");
	prb_error_destroy(err);
	err = prb_error_create(PRB_ERROR_USAGE, "syntax error");
	err = prb_script_error(err, "SELEC 2\n", 8, 0);
	assert_string_equal(err->message, "syntax error");
	assert_string_equal(err->hint, "  SELEC 2\n  ^");
	prb_error_destroy(err);
}

/** A megabyte of each of these parts is parsed quickly. */
static void test_long(void **state)
{
	static const char *const parts[] = {
		":",	     "'",	  "(",	"::",
		"x::int",    "~",	  "x'", "extract(hour from ",
		"a ~ ",	     "$a(",	  "[",	"/*",
		"case end",  "interval ", ";",	"percentile_cont(1) WITHIN ",
		"end::int ",
	};
	enum { SIZE = 1 << 20 };
	prb_auto_free char *script = malloc(SIZE + 32);

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(parts); i++) {
		size_t part = strlen(parts[i]), length = 0, at = 0;
		struct prb_dialect_statement statement;

		while (length + part <= SIZE) {
			memcpy(script + length, parts[i], part);
			length += part;
		}
		do {
			assert_null(prb_dialect_next(script, length, at, &statement));
			assert_true(statement.next > at || at == length);
			at = statement.next;
			prb_dialect_statement_deinit(&statement);
		} while (at < length);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens),	      cmocka_unit_test(test_split),
		cmocka_unit_test(test_nul),	      cmocka_unit_test(test_plain),
		cmocka_unit_test(test_interval),      cmocka_unit_test(test_operators),
		cmocka_unit_test(test_casts),	      cmocka_unit_test(test_percentile),
		cmocka_unit_test(test_quoted_tables), cmocka_unit_test(test_show),
		cmocka_unit_test(test_set),	      cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_locate),	      cmocka_unit_test(test_point),
		cmocka_unit_test(test_error),	      cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

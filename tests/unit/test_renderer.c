/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "sql/render/renderer.h"
#include "tests/unit/in_range.h"

enum { MAX_COLUMNS = 40 };

#define NUL ((struct prb_value){.kind = PRB_VALUE_NULL})
#define INTEGER(n) ((struct prb_value){.kind = PRB_VALUE_INTEGER, .integer = (n)})
#define REAL(n) ((struct prb_value){.kind = PRB_VALUE_REAL, .real = (n)})
/* A literal may hold NULs. */
#define TEXT(s) ((struct prb_value){.kind = PRB_VALUE_TEXT, .text = (s), .length = sizeof(s) - 1})
#define BLOB(s) ((struct prb_value){.kind = PRB_VALUE_BLOB, .text = (s), .length = sizeof(s) - 1})

static struct prb_error *collect(void *context, const char *text, size_t length)
{
	prb_str_append(context, text, length);
	return NULL;
}

static struct prb_renderer *start(const char *format, struct prb_renderer_look look,
				  struct prb_str *out)
{
	struct prb_renderer *r = NULL;

	assert_null(prb_renderer_create(prb_renderer_find(format), &look, collect, out, &r));
	return r;
}

/** Begins a result with the columns that @p names lists, divided by spaces. */
static size_t begin(struct prb_renderer *r, const char *names)
{
	struct prb_renderer_column columns[MAX_COLUMNS];
	char *text = strdup(names), *rest;
	size_t count = 0;

	for (char *p = strtok_r(text, " ", &rest); p; p = strtok_r(NULL, " ", &rest))
		columns[count++].name = p;
	assert_null(prb_renderer_begin(r, columns, count));
	free(text);
	return count;
}

/** The text of one result of one or more rows. */
static char *render(const char *format, struct prb_renderer_look look, const char *names,
		    const struct prb_value *values, size_t rows)
{
	struct prb_str out = {};
	struct prb_renderer *r = start(format, look, &out);
	size_t columns = begin(r, names);

	for (size_t i = 0; i < rows; i++)
		assert_null(prb_renderer_row(r, values + i * columns));
	assert_null(prb_renderer_end(r));
	assert_int_equal(prb_renderer_rows(r), rows);
	prb_renderer_destroy(r);
	return prb_str_take(&out);
}

static void expect(const char *format, const char *names, const struct prb_value *values,
		   size_t rows, const char *expected)
{
	char *text = render(format, (struct prb_renderer_look){}, names, values, rows);

	assert_string_equal(text, expected);
	free(text);
}

#define VALUES(...) ((const struct prb_value[]){__VA_ARGS__})

static void test_formats(void **state)
{
	(void)state;
	assert_null(prb_renderer_find("xml"));
	assert_null(prb_renderer_find(""));
	for (const struct prb_renderer_format *f = prb_renderer_formats; f->name; f++) {
		assert_ptr_equal(prb_renderer_find(f->name), f);
		assert_non_null(f->doc);
	}
}

static void test_json(void **state)
{
	(void)state;
	expect("json", "a", NULL, 0, "[]\n");
	expect("json", "a b", VALUES(INTEGER(1), NUL, INTEGER(2), TEXT("x")), 2,
	       "[{\"a\":1,\"b\":null},{\"a\":2,\"b\":\"x\"}]\n");
	expect("ndjson", "a", NULL, 0, "");
	expect("ndjson", "a b", VALUES(INTEGER(1), NUL, INTEGER(2), TEXT("x")), 2,
	       "{\"a\":1,\"b\":null}\n{\"a\":2,\"b\":\"x\"}\n");
	expect("json", "t", VALUES(TEXT("\"\\\n\0\x1b\xc3\xa9\xff\xf0\x9f\x90\x8d")), 1,
	       "[{\"t\":\"\\\"\\\\\\n\\u0000\\u001b\\u00e9\\\\udcff\\ud83d\\udc0d\"}]\n");
	expect("json", "b e", VALUES(BLOB("\x00\xff"), BLOB("")), 1,
	       "[{\"b\":\"00ff\",\"e\":\"\"}]\n");
}

static void test_json_names(void **state)
{
	(void)state;
	/* A name that a later column has is not given to an earlier one. */
	expect("json", "a a a_2 a", VALUES(INTEGER(1), INTEGER(2), INTEGER(3), INTEGER(4)), 1,
	       "[{\"a\":1,\"a_3\":2,\"a_2\":3,\"a_4\":4}]\n");
	expect("json", "\"\\\x1b\xff", VALUES(INTEGER(1)), 1,
	       "[{\"\\\"\\\\\\u001b\\\\udcff\":1}]\n");
}

static void test_integers(void **state)
{
	static const int64_t numbers[] = {0, -1, 9, 10, -10, INT64_MAX, INT64_MIN, 1234567890123};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "[{\"n\":%lld}]\n", (long long)numbers[i]);
		expect("json", "n", VALUES(INTEGER(numbers[i])), 1, expected);
		snprintf(expected, sizeof(expected), "n\n%lld\n", (long long)numbers[i]);
		expect("csv", "n", VALUES(INTEGER(numbers[i])), 1, expected);
		expect("tsv", "n", VALUES(INTEGER(numbers[i])), 1, expected);
	}
}

static void test_reals(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "0.0"},
		{-0.0, "-0.0"},
		{1, "1.0"},
		{0.1, "0.1"},
		{0.1 + 0.2, "0.30000000000000004"},
		{1e22, "1e+22"},
		{5e-324, "4.94065645841247e-324"},
		{1763707000.125, "1763707000.125"},
		{1e15, "1e+15"},
		{123456789012345678.0, "1.2345678901234568e+17"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "{\"r\":%s}\n", cases[i].text);
		expect("ndjson", "r", VALUES(REAL(cases[i].value)), 1, expected);
		assert_true(strtod(cases[i].text, NULL) == cases[i].value);
	}
	expect("json", "i m n", VALUES(REAL(INFINITY), REAL(-INFINITY), REAL(NAN)), 1,
	       "[{\"i\":null,\"m\":null,\"n\":null}]\n");
	expect("csv", "i m n", VALUES(REAL(INFINITY), REAL(-INFINITY), REAL(NAN)), 1,
	       "i,m,n\ninf,-inf,nan\n");
}

/** Random numbers read back unchanged. */
static void test_reals_read_back(void **state)
{
	uint64_t bits = 88172645463325252;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		double value;
		char *text;

		bits ^= bits << 13;
		bits ^= bits >> 7;
		bits ^= bits << 17;
		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		text = render("tsv", (struct prb_renderer_look){}, "r", VALUES(REAL(value)), 1);
		assert_true(strtod(text + 2, NULL) == value);
		free(text);
	}
}

static void test_csv(void **state)
{
	(void)state;
	expect("csv", "a b", NULL, 0, "a,b\n");
	expect("csv", "a b c", VALUES(NUL, TEXT(""), TEXT("x")), 1, "a,b,c\n,\"\",x\n");
	expect("csv", "a b c d",
	       VALUES(TEXT("1,2"), TEXT("say \"hi\""), TEXT("two\nlines"), TEXT("\r")), 1,
	       "a,b,c,d\n\"1,2\",\"say \"\"hi\"\"\",\"two\nlines\",\"\r\"\n");
	expect("csv", "a b", VALUES(TEXT(" x "), TEXT("\"")), 1, "a,b\n\" x \",\"\"\"\"\n");
	expect("csv", "a,b \"", VALUES(BLOB("\xab"), BLOB("")), 1, "\"a,b\",\"\"\"\"\nab,\"\"\n");
	expect("csv", "a b", VALUES(TEXT("\xff\xc3\xa9"), TEXT("\xc3")), 1,
	       "a,b\n\\udcff\xc3\xa9,\\udcc3\n");
	/* Most readers skip an empty line. */
	expect("csv", "a", VALUES(NUL, TEXT("")), 2, "a\n\"\"\n\"\"\n");
}

static void test_tsv(void **state)
{
	(void)state;
	expect("tsv", "a b c", VALUES(NUL, TEXT(""), TEXT("\\N")), 1, "a\tb\tc\n\\N\t\t\\\\N\n");
	expect("tsv", "a", VALUES(TEXT("\t\n\r\\")), 1, "a\n\\t\\n\\r\\\\\n");
	expect("tsv", "a b", VALUES(TEXT("x\0y"), TEXT("\"\xff\"")), 1,
	       "a\tb\nx\\0y\t\"\\udcff\"\n");
}

static void test_terminal_is_safe(void **state)
{
	const struct prb_renderer_look look = {.terminal = true};

	(void)state;
	for (const struct prb_renderer_format *f = prb_renderer_formats; f->name; f++) {
		char *text = render(
			f->name, look, "\x1b[2J b",
			VALUES(TEXT("\x1b[2J\x07\x9b\xc2\x9b\xe2\x80\xae\x7f"), BLOB("\x1b")), 1);

		for (const char *p = text; *p; p++)
			assert_true(*p == '\n' || *p == '\t' || (unsigned char)*p >= ' ');
		assert_null(strchr(text, 0x7f));
		assert_null(strstr(text, "\xe2\x80\xae"));
		assert_null(strstr(text, "\xc2\x9b"));
		free(text);
	}
}

/* Tables */

static void test_table(void **state)
{
	(void)state;
	expect("table", "n text r", NULL, 0, "n  text  r\n─  ────  ─\n");
	expect("table", "n text r",
	       VALUES(INTEGER(1), TEXT("漢字"), REAL(1.5), INTEGER(-100), NUL, NUL), 2,
	       "   n  text     r\n────  ────  ────\n   1  漢字   1.5\n-100  NULL  NULL\n");
}

static void test_table_reals(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "0.0"},
		{1, "1.0"},
		{0.1 + 0.2, "0.3"},
		{3.14159265, "3.14159"},
		{31415.9265, "31415.9"},
		{-2.5, "-2.5"},
		{123456.789, "123456.8"},
		{0.000123456789, "0.000123457"},
		{1e-7, "1e-07"},
		{1763707000.1234, "1763707000.123"},
		{1763707000, "1763707000.0"},
		{1e15, "1e+15"},
		{INFINITY, "inf"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = render("table", (struct prb_renderer_look){}, "r",
				    VALUES(REAL(cases[i].value)), 1);
		char *last = strrchr(text, '\n');

		*last = '\0';
		last = strrchr(text, '\n') + 1;
		assert_string_equal(last + strspn(last, " "), cases[i].text);
		free(text);
	}
}

static size_t widest_line(const char *text)
{
	size_t widest = 0;
	char *copy = strdup(text), *rest;

	for (char *p = strtok_r(copy, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
		size_t width = 0;

		for (; *p; p++)
			width += (*p & 0xc0) != 0x80;
		widest = width > widest ? width : widest;
	}
	free(copy);
	return widest;
}

static void test_table_fits(void **state)
{
	char long_text[301];
	const struct prb_value wide = {.kind = PRB_VALUE_TEXT, .text = long_text, .length = 300};

	(void)state;
	memset(long_text, 'x', 300);
	long_text[300] = '\0';
	for (size_t width = 1; width < 120; width++) {
		const struct prb_renderer_look look = {.terminal = true, .width = width};
		struct prb_str out = {}, left = {};
		struct prb_renderer *r = start("table", look, &out);

		begin(r, "number text other_text more");
		assert_null(
			prb_renderer_row(r, VALUES(INTEGER(1234567), wide, TEXT("short"), wide)));
		assert_null(prb_renderer_end(r));
		/* A number is never cut, however narrow the table. */
		if (width >= 10)
			assert_uint_in_range(widest_line(prb_str_text(&out)), 1, width);
		assert_non_null(strstr(prb_str_text(&out), "…"));
		prb_renderer_left_out(r, &left);
		assert_non_null(strstr(prb_str_text(&left), width < 30 ? "not fit: " : "are cut"));
		prb_str_deinit(&left);
		prb_str_deinit(&out);
		prb_renderer_destroy(r);
	}
}

static void test_table_not_cut_elsewhere(void **state)
{
	char long_text[5001];
	struct prb_value values[2] = {{.kind = PRB_VALUE_TEXT, .text = long_text, .length = 5000},
				      INTEGER(7)};
	char *text;

	(void)state;
	memset(long_text, 'x', 5000);
	long_text[5000] = '\0';
	text = render("table", (struct prb_renderer_look){}, "a b", values, 1);
	assert_non_null(strstr(text, long_text));
	/* One long cell does not make the rule, and each other row, as long. */
	assert_true(strlen(text) < 5000 + 1000);
	free(text);
}

static void test_table_is_streamed(void **state)
{
	struct prb_str out = {};
	struct prb_renderer *r = start("table", (struct prb_renderer_look){.width = 20}, &out);
	size_t rows = 0, most = 0;
	int64_t i;

	(void)state;
	begin(r, "n");
	for (i = 0; i < 100000; i++) {
		assert_null(prb_renderer_row(r, VALUES(INTEGER(i * 1000000))));
		most = out.length > most ? out.length : most;
		for (size_t at = 0; at < out.length; at++)
			rows += out.data[at] == '\n';
		prb_str_truncate(&out, 0);
	}
	assert_true(rows > 90000);
	assert_true(most < 200000);
	assert_null(prb_renderer_end(r));
	/* Numbers are not cut, though the first page had narrower ones. */
	assert_non_null(strstr(prb_str_text(&out), "\n99999000000\n"));
	prb_str_deinit(&out);
	prb_renderer_destroy(r);
}

static void test_table_colour(void **state)
{
	char *text = render("table", (struct prb_renderer_look){.terminal = true, .colour = true},
			    "a", VALUES(NUL, TEXT("NULL")), 2);

	(void)state;
	assert_string_equal(text, "a\n────\n\x1b[2mNULL\x1b[0m\nNULL\n");
	free(text);
}

static void test_several_results(void **state)
{
	for (const struct prb_renderer_format *f = prb_renderer_formats; f->name; f++) {
		struct prb_str out = {};
		struct prb_renderer *r = start(f->name, (struct prb_renderer_look){}, &out);
		size_t first;

		begin(r, "a");
		assert_null(prb_renderer_row(r, VALUES(INTEGER(1))));
		assert_null(prb_renderer_end(r));
		first = out.length;
		begin(r, "b c");
		assert_null(prb_renderer_row(r, VALUES(TEXT("x"), NUL)));
		assert_null(prb_renderer_end(r));
		assert_null(prb_renderer_end(r));

		char *alone = render(f->name, (struct prb_renderer_look){}, "b c",
				     VALUES(TEXT("x"), NUL), 1);
		assert_string_equal(out.data + first, alone);
		free(alone);
		prb_str_deinit(&out);
		prb_renderer_destroy(r);
	}
	(void)state;
}

static struct prb_error *refuse(void *context, const char *text, size_t length)
{
	(void)context;
	(void)text;
	(void)length;
	return prb_error_create(PRB_ERROR_FAILED, "full");
}

static void test_sink_fails(void **state)
{
	(void)state;
	for (const struct prb_renderer_format *f = prb_renderer_formats; f->name; f++) {
		struct prb_renderer *r;
		struct prb_error *err = NULL;

		assert_null(
			prb_renderer_create(f, &(struct prb_renderer_look){}, refuse, NULL, &r));
		begin(r, "a");
		for (int i = 0; i < 100000 && !err; i++)
			err = prb_renderer_row(r, VALUES(INTEGER(i)));
		assert_non_null(err);
		prb_error_destroy(err);
		prb_renderer_destroy(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_names),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_reals),
		cmocka_unit_test(test_reals_read_back),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_tsv),
		cmocka_unit_test(test_terminal_is_safe),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_table_reals),
		cmocka_unit_test(test_table_fits),
		cmocka_unit_test(test_table_not_cut_elsewhere),
		cmocka_unit_test(test_table_is_streamed),
		cmocka_unit_test(test_table_colour),
		cmocka_unit_test(test_several_results),
		cmocka_unit_test(test_sink_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading JSON, right and wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

static struct prb_json_reader reader(const char *text)
{
	return (struct prb_json_reader){text, text + strlen(text)};
}

static void test_values(void **state)
{
	struct prb_json_reader r = reader(" {\"a\" : [1, \"two\", {\"x\":[]}, null,], \"b\":-2.5e1,"
					  "\"\\u00e9\":\"\\ud83d\\ude00\\n\"}");
	struct prb_str text = {};
	struct prb_json_span span;
	int64_t number;

	(void)state;
	assert_true(prb_json_enter(&r, '{'));
	assert_true(prb_json_member(&r, &text));
	assert_string_equal(prb_str_text(&text), "a");
	assert_true(prb_json_enter(&r, '['));
	assert_true(prb_json_item(&r));
	assert_true(prb_json_read_scaled(&r, 1000, &number));
	assert_int_equal(number, 1000);
	assert_true(prb_json_item(&r));
	assert_true(prb_json_read_text(&r, &text));
	assert_string_equal(prb_str_text(&text), "two");
	assert_true(prb_json_item(&r));
	assert_true(prb_json_skip(&r, &span));
	assert_int_equal(span.length, strlen("{\"x\":[]}"));
	assert_true(prb_json_item(&r));
	assert_false(prb_json_read_text(&r, &text));
	assert_false(prb_json_item(&r));
	assert_true(prb_json_member(&r, &text));
	assert_false(prb_json_read_scaled(&r, 1, &number));
	assert_true(prb_json_member(&r, &text));
	assert_string_equal(prb_str_text(&text), "\xc3\xa9");
	assert_true(prb_json_read_text(&r, &text));
	assert_string_equal(prb_str_text(&text), "\xf0\x9f\x98\x80\n");
	assert_false(prb_json_member(&r, &text));
	assert_false(r.failed);
	prb_str_deinit(&text);
}

static void test_scaled(void **state)
{
	static const struct {
		const char *text;
		int64_t value; /* INT64_MIN: refused */
	} cases[] = {
		{"1732912345678.123", 1732912345678123},
		{"12", 12000},
		{"-0.5", -500},
		{"\"7.25\"", 7250},
		{"0.123456789", 123},
		{"99999999999999999999", INT64_MIN},
		{"9223372036854775807", INT64_MIN},
		{"\"x\"", INT64_MIN},
		{"[]", INT64_MIN},
		{"1e5", INT64_MIN},
		{"", INT64_MIN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct prb_json_reader r = reader(cases[i].text);
		int64_t value = 0;
		bool read = prb_json_read_scaled(&r, 1000, &value);

		assert_int_equal(read, cases[i].value != INT64_MIN);
		if (read)
			assert_int_equal(value, cases[i].value);
	}
}

static void test_broken(void **state)
{
	static const char *const texts[] = {
		"{\"a\"",      "{\"a\":",	 "{a:1}",	    "[1", "{\"a\\",
		"{\"\\x\":1}", "{\"a\":\"\\u12", "{\"a\":{\"b\":}", "}",  "{\"a\":}"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct prb_json_reader r = reader(texts[i]);
		struct prb_str key = {};

		if (prb_json_enter(&r, '{'))
			while (prb_json_member(&r, &key))
				prb_json_skip(&r, NULL);
		assert_true(r.failed);
		assert_true(r.at == r.end);
		prb_str_deinit(&key);
	}
}

/** Depth costs nothing. */
static void test_deep(void **state)
{
	enum { DEPTH = 1000000 };
	char *text = malloc(2 * DEPTH + 1);
	struct prb_json_reader r;

	(void)state;
	assert_non_null(text);
	memset(text, '[', DEPTH);
	memset(text + DEPTH, ']', DEPTH);
	text[2 * DEPTH] = 0;
	r = reader(text);
	assert_true(prb_json_skip(&r, NULL));
	assert_true(r.at == r.end);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_scaled),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

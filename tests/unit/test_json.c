/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/json.h"
#include "tests/unit/in_range.h"

static void expect(struct prb_str *s, const char *expected)
{
	assert_false(s->failed);
	assert_string_equal(prb_str_text(s), expected);
	prb_str_truncate(s, 0);
}

static void test_shapes(void **state)
{
	prb_auto_str struct prb_str s = {};
	struct prb_json json = {&s};

	(void)state;
	prb_json_open(&json, NULL, '{');
	prb_json_open(&json, "empty", '[');
	prb_json_close(&json, ']');
	prb_json_open(&json, "list", '[');
	prb_json_text(&json, NULL, "a");
	prb_json_open(&json, NULL, '{');
	prb_json_null(&json, "n");
	prb_json_close(&json, '}');
	prb_json_integer(&json, NULL, -5);
	prb_json_close(&json, ']');
	prb_json_bool(&json, "yes", true);
	prb_json_bool(&json, "no", false);
	prb_json_integer(&json, "\"\x1b", 1);
	prb_json_close(&json, '}');
	expect(&s, "{\"empty\":[],\"list\":[\"a\",{\"n\":null},-5],\"yes\":true,\"no\":false,"
		   "\"\\\"\\u001b\":1}");
}

static void test_numbers(void **state)
{
	prb_auto_str struct prb_str s = {};
	struct prb_json json = {&s};

	(void)state;
	prb_json_integer(&json, NULL, INT64_MIN);
	prb_json_natural(&json, NULL, -1);
	prb_json_natural(&json, NULL, INT64_MAX);
	prb_json_real(&json, NULL, 38.1239, 3);
	prb_json_real(&json, NULL, -1, 3);
	prb_json_real(&json, NULL, NAN, 3);
	prb_json_real(&json, NULL, INFINITY, 3);
	prb_json_real(&json, NULL, 1700000000.25, 6);
	expect(&s, "-9223372036854775808,null,9223372036854775807,38.124,null,null,null,"
		   "1700000000.250000");
}

static void test_text(void **state)
{
	prb_auto_str struct prb_str s = {};
	struct prb_json json = {&s};

	(void)state;
	prb_json_text(&json, NULL, NULL);
	prb_json_bytes(&json, NULL, NULL, 0);
	prb_json_bytes(&json, NULL, "a\0b", 3);
	prb_json_text(&json, NULL, "");
	prb_json_text(&json, NULL, "a\"b\\c\n\t\x1b\x7f/");
	expect(&s, "null,null,\"a\\u0000b\",\"\",\"a\\\"b\\\\c\\n\\u0009\\u001b\\u007f/\"");
	json.comma = false;
	prb_json_text(&json, NULL, "é漢\xf0\x9f\x90\x8d\xe2\x80\xae");
	expect(&s, "\"\\u00e9\\u6f22\\ud83d\\udc0d\\u202e\"");
	json.comma = false;
	prb_json_text(&json, NULL, "x\xff\xed\xa0\x80");
	expect(&s, "\"x\\\\udcff\\\\udced\\\\udca0\\\\udc80\"");
}

/** Another reader gets back every byte that a string can have. */
static void test_round_trip(void **state)
{
	prb_auto_str struct prb_str s = {};
	prb_auto_str struct prb_str all = {};
	struct prb_json json = {&s};

	(void)state;
	for (uint32_t c = 1; c < 0x3000; c++)
		prb_str_put_utf8(&all, c);
	prb_str_put_utf8(&all, 0x10ffff);
	prb_json_text(&json, NULL, prb_str_text(&all));
	for (size_t i = 0; i < s.length; i++)
		assert_uint_in_range(s.data[i], ' ', '~');

	json_t *read = json_loads(prb_str_text(&s), JSON_DECODE_ANY, NULL);
	assert_non_null(read);
	assert_string_equal(json_string_value(read), prb_str_text(&all));
	json_decref(read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

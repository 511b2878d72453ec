/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files for viewers: their formats' rules, and hostile names. */
#include "tests/unit/profile_made.h"

static const struct prb_profile_choice cpu = {.weight = PRB_WEIGHT_CPU};

static int setup(void **state)
{
	struct prb_recording *r;
	uint32_t main_thread, worker;

	assert_null(prb_recording_create(&r));
	r->pid = 4242;
	main_thread = made_thread(r, 4242, "python3");
	worker = made_thread(r, 4250, "wor\"ker\x1b[2J");
	made_run(r, main_thread, made_stack(r, "main/load", 5), 10);
	made_run(r, main_thread, made_stack(r, "main/load", 5), 20);
	made_run(r, main_thread, made_stack(r, "main", 7), 5);
	made_run(r, worker, made_stack(r, "main/load", 6), 2);
	made_run(r, worker, made_stack(r, "e;vil\n\x1b]0;x", 1), 1);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	prb_recording_destroy(*state);
	return 0;
}

static void expect_lines(const struct prb_recording *r, const struct prb_profile_choice *choice,
			 const char *expected)
{
	size_t length;
	char *text = made_text(r, choice, &prb_format_collapsed, &length);

	assert_string_equal(text, expected);
	free(text);
}

static void test_collapsed(void **state)
{
	expect_lines(*state, &cpu,
		     "main (/src/main.py:1) 5000\n"
		     "main (/src/main.py:1);load (/src/load.py:1) 32000\n"
		     "e\\x3bvil\\n\\x1b]0\\x3bx (/src/e\\x3bvil\\n\\x1b]0\\x3bx.py:1) 1000\n");
}

static void test_collapsed_lines(void **state)
{
	const bool only[] = {true, false};
	const struct prb_profile_choice lines = {PRB_WEIGHT_WALL, true, only};

	expect_lines(*state, &lines,
		     "main (/src/main.py:5);load (/src/load.py:5) 60000\n"
		     "main (/src/main.py:7) 10000\n");
}

static void test_speedscope(void **state)
{
	size_t length;
	char *text = made_text(*state, &cpu, &prb_format_speedscope, &length);

	assert_non_null(strstr(text, "\"samples\":[[0,1],[0]],\"weights\":[30000000,5000000]"));
	assert_non_null(strstr(text, "\"name\":\"4250 wor\\\"ker\\u001b[2J\""));
	assert_non_null(strstr(text, "\"startValue\":0,\"endValue\":35000000"));
	for (size_t i = 0; i < length; i++)
		assert_true(text[i] == '\n' ? i == length - 1 : text[i] >= ' ' && text[i] < 127);
	free(text);
}

static void test_speedscope_without_samples(void **state)
{
	const bool none[] = {false, false};
	const struct prb_profile_choice nothing = {.threads = none};
	size_t length;
	char *text = made_text(*state, &nothing, &prb_format_speedscope, &length);

	assert_non_null(strstr(text, "\"name\":\"no thread used a processor\""));
	assert_non_null(strstr(text, "\"samples\":[],\"weights\":[]"));
	free(text);
}

static void test_formats_are_found(void **state)
{
	const struct prb_profile_format *format;
	struct prb_error *err;

	(void)state;
	assert_null(prb_profile_format_find("out/a.speedscope.json", &format));
	assert_ptr_equal(format, &prb_format_speedscope);
	assert_null(prb_profile_format_named("svg", &format));
	assert_ptr_equal(format, &prb_format_svg);
	assert_null(prb_profile_format_find("a.txt", &format));
	assert_ptr_equal(format, &prb_format_collapsed);
	err = prb_profile_format_find("a.jpeg", &format);
	assert_int_equal(err->code, PRB_ERROR_USAGE);
	assert_non_null(strstr(err->hint, ".speedscope.json"));
	prb_error_destroy(err);
	err = prb_profile_format_find(".txt", &format); /* a hidden file without an extension */
	assert_non_null(err);
	prb_error_destroy(err);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_collapsed),
		TEST(test_collapsed_lines),
		TEST(test_speedscope),
		TEST(test_speedscope_without_samples),
		cmocka_unit_test(test_formats_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

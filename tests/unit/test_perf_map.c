/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of JIT code in perf maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "profile/native/perf_map.h"

static struct prb_perf_map map;

static int setup(void **state)
{
	(void)state;
	prb_perf_map_init(&map);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	prb_perf_map_deinit(&map);
	return 0;
}

static void feed(const char *text)
{
	assert_null(prb_perf_map_feed(&map, text, strlen(text)));
}

static void expect(uint64_t address, const char *name)
{
	const char *found = prb_perf_map_find(&map, address);

	if (name)
		assert_string_equal(found ? found : "(none)", name);
	else
		assert_null(found);
}

static void test_finds(void **state)
{
	(void)state;
	feed("2000 10 second\n1000 10 py::<module>:/src/a b.py\n0x3000 0x8 Third\n");
	expect(0xfff, NULL);
	expect(0x1000, "py::<module>:/src/a b.py");
	expect(0x100f, "py::<module>:/src/a b.py");
	expect(0x1010, NULL);
	expect(0x2008, "second");
	expect(0x3007, "Third");
}

static void test_later_ones_win(void **state)
{
	(void)state;
	feed("1000 100 old\n1000 10 new\n1080 10 within\n");
	expect(0x1008, "new");
	expect(0x1010, "old");
	expect(0x1080, "within");
	feed("1000 100 newest\n");
	expect(0x1008, "newest");
	expect(0x1080, "newest");
}

static void test_grows_in_the_middle_of_a_line(void **state)
{
	(void)state;
	feed("1000 10 fi");
	expect(0x1000, NULL);
	feed("rst");
	feed("\n2000 10 second");
	expect(0x1000, "first");
	expect(0x2000, NULL);
	feed("\n");
	expect(0x2000, "second");
}

static void test_nonsense_is_left_out(void **state)
{
	(void)state;
	feed("\n\n10\n10 10\n10 10 \nzz 10 a\n10 zz a\n 10 10 a\n10 0 empty\n"
	     "fffffffffffffff0 20 over\n11111111111111111 1 long\n");
	assert_int_equal(map.symbols.count, 0);
	feed("1000 10 good\n");
	expect(0x1000, "good");
}

static void test_long_lines(void **state)
{
	char line[6000];

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "1000 10 ", 8);
	line[1000] = '\n';
	assert_null(prb_perf_map_feed(&map, line, 1001));
	assert_int_equal(strlen(prb_perf_map_find(&map, 0x1000)), 500);
	memcpy(line, "2000 10 ", 8);
	line[1000] = 'x';
	assert_null(prb_perf_map_feed(&map, line, sizeof(line)));
	feed("\n3000 10 next\n");
	expect(0x2000, NULL);
	expect(0x3000, "next");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_finds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_later_ones_win, setup, teardown),
		cmocka_unit_test_setup_teardown(test_grows_in_the_middle_of_a_line, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_nonsense_is_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_lines, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pools of strings: each text is stored once, at a stable address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/pool.h"

enum { MANY = 5000 };

static int setup(void **state)
{
	struct prb_pool *pool;

	assert_null(prb_pool_create(&pool));
	*state = pool;
	return 0;
}

static int teardown(void **state)
{
	prb_pool_destroy(*state);
	return 0;
}

static void test_same_text_has_same_address(void **state)
{
	char text[] = "Thread.run";
	const char *first, *second, *other;

	assert_null(prb_pool_share(*state, text, &first));
	assert_null(prb_pool_share(*state, "Thread.run", &second));
	assert_null(prb_pool_share(*state, "Thread.start", &other));
	text[0] = 'x';
	assert_ptr_equal(first, second);
	assert_string_equal(first, "Thread.run");
	assert_string_equal(other, "Thread.start");
}

static void test_nothing_and_empty_differ(void **state)
{
	const char *nothing = "", *empty = NULL;

	assert_null(prb_pool_share(*state, NULL, &nothing));
	assert_null(prb_pool_share(*state, "", &empty));
	assert_null(nothing);
	assert_string_equal(empty, "");
}

static void test_many_strings_keep_their_addresses(void **state)
{
	static const char *known[MANY];
	char text[32];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < MANY; i++) {
			const char *shared;

			snprintf(text, sizeof(text), "function_%d", i);
			assert_null(prb_pool_share(*state, text, &shared));
			assert_string_equal(shared, text);
			if (round)
				assert_ptr_equal(shared, known[i]);
			known[i] = shared;
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same_text_has_same_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_and_empty_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_strings_keep_their_addresses, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

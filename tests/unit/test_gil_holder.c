/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the agent writes to get the GIL: never far from where the built-in tables have it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "dump/gil_holder.h"

enum { BASE = 0x10000000 };

static struct prb_gil_words words_of(const struct prb_layout *layout)
{
	struct prb_interp interp = {.address = BASE, .gil = 2 * BASE};
	struct prb_python py = {.layout = *layout, .runtime = 3 * BASE};

	return prb_gil_words(&py, &interp);
}

static void test_by_the_tables(void **state)
{
	static const uint16_t versions[] = {0x0307, 0x0308, 0x0309, 0x030a, 0x030b,
					    0x030c, 0x030d, 0x030e, 0x030f};
	(void)state;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		const struct prb_layout *table = prb_layout_table(versions[i], false, false);

		assert_non_null(table);
		struct prb_gil_words words = words_of(table);
		assert_true(words.locked > 2 * BASE && words.locked < 2 * BASE + 1024);
		assert_true(words.request);
		assert_int_equal(!words.breaker, table->thread_eval_breaker != PRB_ABSENT);
	}
}

static void test_far_from_the_tables(void **state)
{
	static const int32_t far[] = {-59008, -4, 100000, 102, INT32_MAX, INT32_MIN};
	const struct prb_layout *table = prb_layout_table(0x030b, false, false);
	(void)state;

	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		struct prb_layout layout = *table;

		layout.interp_eval_breaker = far[i];
		assert_int_equal(words_of(&layout).request, 0);
		layout = *table;
		layout.interp_drop_request = far[i];
		assert_int_equal(words_of(&layout).request, 0);
		layout = *table;
		layout.gil_holder = far[i];
		assert_int_equal(words_of(&layout).request, 0);
		layout = *prb_layout_table(0x030e, false, false);
		layout.thread_eval_breaker = far[i];
		assert_int_equal(words_of(&layout).request, 0);
		layout = *prb_layout_table(0x0308, false, false);
		layout.runtime_eval_breaker = far[i];
		assert_int_equal(words_of(&layout).request, 0);
	}
}

/* Builds of a version differ a little, as their locks and debugging aids do. */
static void test_near_the_tables(void **state)
{
	struct prb_layout layout = *prb_layout_table(0x030b, false, false);
	(void)state;

	layout.interp_eval_breaker += 16;
	layout.interp_drop_request += 16;
	assert_int_equal(words_of(&layout).breaker, BASE + layout.interp_eval_breaker);
	assert_int_equal(words_of(&layout).request, BASE + layout.interp_drop_request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_the_tables),
		cmocka_unit_test(test_far_from_the_tables),
		cmocka_unit_test(test_near_the_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The handlers of instructions, as CPython 3.12's own dis says them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/checked.h"
#include "python/frames/exception_table.h"

/* with a as x, b: … */
static const uint8_t table[] = {
	0x83, 0x03, 0x7f, 0x0e, 0x03, 0x86, 0x7e, 0x2b, 0x7f, 0x02, 0x05, 0xfe,
	0x31, 0x08, 0x7f, 0x0e, 0x03, 0xff, 0x02, 0x05, 0x7f, 0x0b, 0x09, 0xff,
	0x07, 0x07, 0x7f, 0x0e, 0x03, 0xff, 0x0e, 0x05, 0x7f, 0x17, 0x07,
};

static void test_what_python_says(void **state)
{
	static const struct {
		int64_t start, end, handler;
		uint32_t depth;
	} entries[] = {
		{6, 12, 8092, 1},      {12, 8034, 8068, 2},   {8034, 8050, 8092, 1},
		{8068, 8078, 8086, 4}, {8078, 8092, 8092, 1}, {8092, 8102, 8110, 3},
	};

	(void)state;
	for (int64_t position = -4; position < 8200; position++) {
		struct prb_exception_handler found = {-1, 0}, expected = {-1, 0};
		bool has = false;

		for (size_t i = 0; i < PRB_ARRAY_SIZE(entries); i++) {
			if (position < entries[i].start || position >= entries[i].end)
				continue;
			has = true;
			expected.position = entries[i].handler;
			expected.depth = entries[i].depth;
		}
		assert_int_equal(prb_exception_table_find(table, sizeof(table), position, &found),
				 has);
		assert_int_equal(found.position, expected.position);
		assert_int_equal(found.depth, expected.depth);
	}
}

/* What is cut off has no handlers behind the cut, and is not read past it. */
static void test_cut_tables(void **state)
{
	struct prb_exception_handler found;

	(void)state;
	for (size_t size = 0; size < sizeof(table); size++)
		assert_int_equal(prb_exception_table_find(table, size, 8100, &found), false);
	assert_true(prb_exception_table_find(table, 5, 8, &found));
	assert_false(prb_exception_table_find(table, 4, 8, &found));
}

static void test_numbers_without_end(void **state)
{
	static const uint8_t endless[] = {0xff, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};
	struct prb_exception_handler found;

	(void)state;
	assert_false(prb_exception_table_find(endless, sizeof(endless), 1, &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_python_says),
		cmocka_unit_test(test_cut_tables),
		cmocka_unit_test(test_numbers_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

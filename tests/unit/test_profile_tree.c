/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Call trees, and the sums of reports over them. */
#include "tests/unit/profile_made.h"

#include <math.h>

#include "profile/recording/report.h"

static const struct prb_profile_choice cpu = {.weight = PRB_WEIGHT_CPU};

static int setup(void **state)
{
	struct prb_recording *recording;

	assert_null(prb_recording_create(&recording));
	*state = recording;
	return 0;
}

static int teardown(void **state)
{
	prb_recording_destroy(*state);
	return 0;
}

static void test_equal_things_have_one_number(void **state)
{
	struct prb_recording *r = *state;
	uint32_t ab = made_stack(r, "a/b", 3), abc = made_stack(r, "a/b/c", 3);

	assert_int_equal(made_stack(r, "a/b", 3), ab);
	assert_int_equal(made_stack(r, "a/b/c", 3), abc);
	assert_int_equal(r->tree->stacks.items[abc].parent, ab);
	assert_int_equal(r->tree->stacks.items[abc].depth, 3);
	assert_int_equal(r->tree->functions.count, 3);
	assert_int_equal(r->tree->stacks.count, 4);
	assert_int_not_equal(made_stack(r, "a/b", 4), ab); /* another line */
	assert_int_equal(r->tree->functions.count, 3);
	assert_string_equal(prb_tree_function_of(r->tree, abc)->name, "c");
}

static void test_functions_differ_by_file_and_line(void **state)
{
	struct prb_recording *r = *state;
	const struct prb_tree_function functions[] = {
		{PRB_FUNCTION_PYTHON, "f", "a.py", 1}, {PRB_FUNCTION_PYTHON, "f", "b.py", 1},
		{PRB_FUNCTION_PYTHON, "f", "a.py", 2}, {PRB_FUNCTION_NATIVE, "f", "a.py", 1},
		{PRB_FUNCTION_PYTHON, "f", NULL, 1},
	};
	uint32_t number, again;

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 5; i++) {
			assert_null(prb_tree_function(r->tree, &functions[i], &number));
			assert_int_equal(number, i);
		}
	assert_null(prb_tree_note(r->tree, "<unreadable>", &number));
	assert_null(prb_tree_note(r->tree, "<unreadable>", &again));
	assert_int_equal(number, again);
	assert_int_equal(prb_tree_function_of(r->tree, number)->kind, PRB_FUNCTION_NOTE);
}

static void test_many_stacks(void **state)
{
	struct prb_recording *r = *state;
	char path[64];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20000; i++) {
			snprintf(path, sizeof(path), "main/f%d", i);
			assert_int_equal(made_stack(r, path, 1), i + 2);
		}
}

static const struct prb_report_row *row_of(const struct prb_recording *r,
					   const struct prb_report *report, const char *name)
{
	const struct prb_report_row *row;

	prb_vec_each (row, &report->rows)
		if (!strcmp(r->tree->functions.items[row->function].name, name))
			return row;
	fail_msg("no row of %s", name);
	return NULL;
}

static void expect_row(const struct prb_recording *r, const struct prb_report *report,
		       const char *name, int64_t self_ms, int64_t total_ms)
{
	const struct prb_report_row *row = row_of(r, report, name);

	assert_int_equal(row->self, self_ms * 1000000);
	assert_int_equal(row->total, total_ms * 1000000);
}

static void test_self_and_total(void **state)
{
	struct prb_recording *r = *state;
	uint32_t thread = made_thread(r, 7, "worker");
	struct prb_report report;

	made_run(r, thread, made_stack(r, "main/a/b", 3), 10);
	made_run(r, thread, made_stack(r, "main/a", 3), 5);
	made_run(r, thread, made_stack(r, "main/c/b", 3), 20);
	made_run(r, thread, made_stack(r, "main/c/b", 4), 40);
	assert_null(prb_report_make(r, &cpu, &report));
	assert_int_equal(report.weight, 75000000);
	assert_int_equal(report.taken, 4);
	assert_int_equal(report.rows.count, 4);
	expect_row(r, &report, "main", 0, 75);
	expect_row(r, &report, "a", 5, 15);
	expect_row(r, &report, "b", 70, 70);
	expect_row(r, &report, "c", 0, 60);
	assert_ptr_equal(row_of(r, &report, "b"), report.rows.items);
	prb_report_deinit(&report);
}

static void test_recursion_counts_once(void **state)
{
	struct prb_recording *r = *state;
	uint32_t thread = made_thread(r, 7, "worker");
	struct prb_report report;

	made_run(r, thread, made_stack(r, "f/f/g/f", 1), 10);
	made_run(r, thread, made_stack(r, "f/f", 1), 1);
	made_run(r, thread, made_stack(r, "f/h", 1), 2);
	made_run(r, thread, made_stack(r, "g", 1), 4);
	assert_null(prb_report_make(r, &cpu, &report));
	expect_row(r, &report, "f", 11, 13);
	expect_row(r, &report, "g", 4, 14);
	expect_row(r, &report, "h", 2, 2);
	prb_report_deinit(&report);
}

static void test_deep_recursion(void **state)
{
	enum { DEEP = 50000 };
	struct prb_recording *r = *state;
	uint32_t thread = made_thread(r, 7, "worker"), stack = made_stack(r, "f", 1);
	uint32_t frame = r->tree->stacks.items[stack].frame;
	struct prb_report report;

	for (int i = 1; i < DEEP; i++)
		assert_null(prb_tree_call(r->tree, stack, frame, &stack));
	made_run(r, thread, stack, 3);
	assert_null(prb_report_make(r, &cpu, &report));
	expect_row(r, &report, "f", 3, 3);
	prb_report_deinit(&report);
}

static void test_choices(void **state)
{
	struct prb_recording *r = *state;
	uint32_t one = made_thread(r, 7, "one"), two = made_thread(r, 8, "two");
	const bool only[] = {false, true};
	struct prb_report report;

	made_run(r, one, made_stack(r, "f", 3), 10);
	made_run(r, two, made_stack(r, "f", 4), 1);
	made_run(r, two, made_stack(r, "f", 5), 2);
	assert_null(prb_report_make(r, &(struct prb_profile_choice){PRB_WEIGHT_CPU, true, only},
				    &report));
	assert_int_equal(report.rows.count, 2);
	assert_int_equal(report.rows.items[0].line, 5);
	assert_int_equal(report.rows.items[0].self, 2000000);
	prb_report_deinit(&report);
	assert_null(prb_report_make(r, &(struct prb_profile_choice){PRB_WEIGHT_WALL}, &report));
	expect_row(r, &report, "f", 26, 26);
	prb_report_deinit(&report);
}

static void test_nothing(void **state)
{
	struct prb_report report;

	assert_null(prb_report_make(*state, &cpu, &report));
	assert_int_equal(report.rows.count, 0);
	assert_true(prb_report_share(&report, 0).share == 0);
	assert_true(prb_report_share(&report, 0).high == 1);
	prb_report_deinit(&report);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 5e-5;
}

/* Values from textbooks. */
static void test_wilson(void **state)
{
	struct prb_share half = prb_share_of(50, 100, 100), none = prb_share_of(0, 1, 100);

	(void)state;
	assert_true(near(half.share, 0.5) && near(half.low, 0.40383) && near(half.high, 0.59617));
	assert_true(near(none.low, 0) && near(none.high, 0.03699));
	assert_true(near(prb_share_of(1, 1, 10).low, 0.72247));
}

/* Samples of different weights carry less information than equally many equal ones. */
static void test_independent_samples(void **state)
{
	struct prb_recording *r = *state;
	uint32_t thread = made_thread(r, 7, "worker"), stack = made_stack(r, "f", 1);
	struct prb_report report;

	for (int i = 0; i < 10; i++)
		made_run(r, thread, stack, 5);
	assert_null(prb_report_make(r, &cpu, &report));
	assert_true(near(report.samples, 10));
	prb_report_deinit(&report);
	made_run(r, thread, stack, 5000);
	assert_null(prb_report_make(r, &cpu, &report));
	assert_true(report.samples < 1.1);
	prb_report_deinit(&report);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_equal_things_have_one_number),
		TEST(test_functions_differ_by_file_and_line),
		TEST(test_many_stacks),
		TEST(test_self_and_total),
		TEST(test_recursion_counts_once),
		TEST(test_deep_recursion),
		TEST(test_choices),
		TEST(test_nothing),
		TEST(test_wilson),
		TEST(test_independent_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

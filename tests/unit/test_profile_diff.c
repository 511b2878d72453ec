/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Comparison of two recordings, and clipping of one. */
#include "tests/unit/profile_made.h"

#include <math.h>

#include "base/checked.h"
#include "profile/recording/diff.h"
#include "profile/recording/join.h"
#include "profile/recording/range.h"

static const struct prb_profile_choice cpu = {.weight = PRB_WEIGHT_CPU};

/* @samples alternating samples of 1 ms, of which @p many in ten are in "busy". */
static struct prb_recording *made(unsigned samples, unsigned many)
{
	struct prb_recording *r;
	uint32_t thread, busy, other;

	assert_null(prb_recording_create(&r));
	thread = made_thread(r, 7, "main");
	busy = made_stack(r, "main/busy", 3);
	other = made_stack(r, "main/other", 3);
	for (unsigned i = 0; i < samples; i++)
		made_run(r, thread, i * 7 % 10 < many ? busy : other, 1);
	return r;
}

static struct prb_recording *joined(struct prb_recording *before, struct prb_recording *after)
{
	struct prb_recording *r;

	assert_null(prb_recording_join(before, after, &r));
	prb_recording_destroy(before);
	prb_recording_destroy(after);
	return r;
}

static const struct prb_diff_row *row_of(const struct prb_recording *r, const struct prb_diff *diff,
					 const char *name)
{
	const struct prb_diff_row *row, *found = NULL;

	prb_vec_each (row, &diff->rows)
		if (!strcmp(r->tree->functions.items[row->function].name, name)) {
			assert_null(found);
			found = row;
		}
	assert_non_null(found);
	return found;
}

static void test_a_change_and_none(void **state)
{
	static const struct {
		unsigned samples, before, after;
		bool certain;
	} cases[] = {
		{1000, 5, 7, true}, {1000, 5, 5, false}, {20, 5, 6, false}, {1000, 0, 5, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct prb_recording *r = joined(made(cases[i].samples, cases[i].before),
						 made(cases[i].samples, cases[i].after));
		double change = (cases[i].after - (double)cases[i].before) / 10;
		const struct prb_diff_row *busy;
		struct prb_diff diff;

		assert_null(prb_diff_make(r, &cpu, &diff));
		busy = row_of(r, &diff, "busy");
		assert_true(fabs(busy->self.after - busy->self.before - change) < 0.001);
		assert_true(busy->self.low < change && change < busy->self.high);
		assert_int_equal(busy->self.certain, cases[i].certain);
		assert_int_equal(busy->self.low > 0, cases[i].certain);
		assert_false(row_of(r, &diff, "main")->total.certain);
		assert_int_equal(diff.before.taken + diff.after.taken, 2 * cases[i].samples);
		prb_diff_deinit(&diff);
		prb_recording_destroy(r);
	}
}

/* A recording of a program with long phases, from @p first on. */
static struct prb_recording *made_phases(unsigned first)
{
	struct prb_recording *r;
	uint32_t thread, stacks[2];

	assert_null(prb_recording_create(&r));
	thread = made_thread(r, 7, "main");
	stacks[0] = made_stack(r, "main/busy", 3);
	stacks[1] = made_stack(r, "main/other", 3);
	for (unsigned i = 0; i < 1000; i++)
		made_run(r, thread, stacks[(i + first) / 200 % 2], 1);
	return r;
}

static void check_that_phases_are_chance(struct prb_recording *r)
{
	struct prb_diff diff;

	assert_null(prb_diff_make(r, &cpu, &diff));
	assert_false(row_of(r, &diff, "busy")->self.certain);
	assert_true(row_of(r, &diff, "busy")->self.worth > 5);
	prb_diff_deinit(&diff);
	prb_recording_destroy(r);
}

/* The recordings may be of different phases. */
static void test_phases_are_chance(void **state)
{
	(void)state;
	check_that_phases_are_chance(joined(made_phases(0), made_phases(100)));
}

/* Two windows of a second each, kept of an hour. */
static void make_windows(struct prb_recording *r)
{
	const int64_t second = 1000000000, gap = 1000 * second;
	struct prb_run *run;

	r->condition = strdup("cpu_ms > 100");
	r->around = second / 2;
	r->duration = 3600 * second;
	prb_vec_each (run, &r->runs)
		run->begin += run->begin < second ? gap : 2 * gap;
	for (unsigned i = 1; i <= 2; i++) {
		struct prb_profile_window *window = prb_vec_push(&r->windows);

		assert_non_null(window);
		window->begin = i * gap + (i - 1) * second;
		window->end = window->begin + second;
	}
}

/* The windows are what is cut into parts: these have the phases of the whole above. */
static void test_windows(void **state)
{
	struct prb_recording *before = made_phases(0), *after = made_phases(100), *r;

	(void)state;
	make_windows(before);
	make_windows(after);
	r = joined(before, after);
	assert_int_equal(prb_recording_covered(r), 2000000000);
	assert_int_equal(prb_recording_covered(r->before), 2000000000);
	assert_string_equal(r->before->condition, "cpu_ms > 100");
	assert_int_equal(r->windows.count, 2);
	assert_int_equal(prb_recording_moment(r, 0), r->windows.items[0].begin);
	assert_int_equal(prb_recording_moment(r, 1500000000), r->windows.items[1].end - 500000000);
	assert_int_equal(prb_recording_moment(r, 2000000000), r->windows.items[1].end);
	check_that_phases_are_chance(r);
}

static uint32_t add(struct prb_recording *r, const char *name, const char *file, int32_t first,
		    int32_t line)
{
	const struct prb_tree_function f = {.name = name, .file = file, .first_line = first};
	uint32_t function, frame, stack;

	assert_null(prb_tree_function(r->tree, &f, &function));
	assert_null(prb_tree_frame(r->tree, function, line, &frame));
	assert_null(prb_tree_call(r->tree, 0, frame, &stack));
	made_run(r, 0, stack, 1);
	return stack;
}

/*
 * A function that moved in its file, or with it, is the same; one with only the same name is not.
 */
static void test_functions_that_moved(void **state)
{
	const struct prb_profile_choice lines = {.weight = PRB_WEIGHT_CPU, .lines = true};
	struct prb_recording *before, *after, *r;
	const struct prb_diff_row *row;
	struct prb_diff diff;

	(void)state;
	assert_null(prb_recording_create(&before));
	assert_null(prb_recording_create(&after));
	made_thread(before, 1, "a");
	made_thread(after, 2, "b");
	add(before, "moved", "/v1/app.py", 10, 12);
	add(after, "moved", "/v1/app.py", 30, 32);
	add(before, "folder", "/v1/other.py", 1, 2);
	add(after, "folder", "/v2/other.py", 1, 2);
	add(before, "<lambda>", "/v1/app.py", 3, 3);
	add(before, "<lambda>", "/v1/app.py", 5, 5);
	add(after, "<lambda>", "/v1/app.py", 3, 3);
	add(after, "<lambda>", "/v1/app.py", 7, 7);
	add(before, "same", "/v1/x.py", 1, 2);
	add(after, "same", "/v1/y.py", 1, 2);
	r = joined(before, after);
	assert_int_equal(r->tree->functions.count, 6);
	assert_int_equal(r->before_threads, 1);
	assert_int_equal(r->threads.items[0].tid, 1);
	assert_null(prb_diff_make(r, &lines, &diff));
	row = row_of(r, &diff, "moved");
	assert_int_equal(row->line, 32);
	assert_true(row->before.self == 1000000 && row->after.self == 1000000);
	row = row_of(r, &diff, "folder");
	assert_true(row->before.self && row->after.self);
	prb_diff_deinit(&diff);
	prb_recording_destroy(r);
}

/* Parts of the time add up to all of it. */
/* A sample of each process, of a function below it. */
static struct prb_recording *made_processes(const char *const *names)
{
	struct prb_recording *r;
	uint32_t thread;

	assert_null(prb_recording_create(&r));
	thread = made_thread(r, 7, "main");
	for (; *names; names++) {
		uint32_t busy = made_stack(r, "busy", 3), root, stack;

		assert_null(prb_tree_note(r->tree, *names, &root));
		assert_null(
			prb_tree_call(r->tree, root, r->tree->stacks.items[busy].frame, &stack));
		made_run(r, thread, stack, 10);
	}
	return r;
}

/* A restarted process is the same, though it has another pid. */
static void test_processes(void **state)
{
	static const char *const before[] = {"10 python3 a.py", "11 worker", "12 worker",
					     "13 worker",	"14 gone",   NULL};
	static const char *const after[] = {"20 python3 a.py", "12 worker", "21 worker",
					    "22 worker",       "23 new",    NULL};
	static const struct {
		const char *name;
		double before, after;
	} rows[] = {{"20 python3 a.py", 0.2, 0.2},
		    {"12 worker", 0.2, 0.2},
		    {"21 worker", 0.2, 0.2},
		    {"22 worker", 0.2, 0.2},
		    {"14 gone", 0.2, 0},
		    {"23 new", 0, 0.2},
		    {"busy", 1, 1}};
	struct prb_recording *r = joined(made_processes(before), made_processes(after));
	struct prb_diff diff;

	(void)state;
	assert_null(prb_diff_make(r, &cpu, &diff));
	assert_int_equal(diff.rows.count, PRB_ARRAY_SIZE(rows));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(rows); i++) {
		const struct prb_diff_row *row = row_of(r, &diff, rows[i].name);

		assert_true(fabs(row->total.before - rows[i].before) < 1e-6);
		assert_true(fabs(row->total.after - rows[i].after) < 1e-6);
	}
	/* The same calls of the same process are one stack. */
	assert_int_equal(r->tree->stacks.count - 1, 13);
	prb_diff_deinit(&diff);
	prb_recording_destroy(r);
}

static void test_ranges(void **state)
{
	int64_t sum = 0, duration = 0;

	(void)state;
	for (unsigned part = 0; part < 3; part++) {
		struct prb_recording *r = made(100, 5);
		const int64_t third = r->duration / 3;
		struct prb_report report;

		prb_recording_clip(r, part * third, part == 2 ? INT64_MAX : (part + 1) * third);
		assert_null(prb_report_make(r, &cpu, &report));
		assert_true(r->runs.items[0].begin >= 0 &&
			    r->threads.items[0].cpu == report.weight);
		sum += report.weight;
		duration += r->duration;
		prb_report_deinit(&report);
		prb_recording_destroy(r);
	}
	assert_true(sum > 99999990 && sum <= 100000000);
	assert_int_equal(duration, 200000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_change_and_none),
		cmocka_unit_test(test_phases_are_chance),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_functions_that_moved),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

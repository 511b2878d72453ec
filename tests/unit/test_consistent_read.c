/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Repeated reads of half-made data, in running and in sleeping children. */
#include "dump/tasks/consistent_read.h"
#include "tests/unit/in_range.h"
#include "tests/unit/sleeper.h"

struct tries {
	int made, failing; /* attempts so far, and the number that fail */
	enum prb_error_code code;
};

static struct prb_error *attempt(void *context)
{
	struct tries *t = context;

	return ++t->made > t->failing ? NULL : prb_error_create(t->code, "half made");
}

static void spin(void *unused)
{
	(void)unused;
	for (;;)
		__asm__ volatile("");
}

static void sleep_on(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

static struct prb_error *read_child(sleeper *does, char state, struct tries *tries,
				    bool *consistent)
{
	struct prb_tasks tasks = {};
	struct prb_view *view;
	struct child child;

	start(&child, does, NULL);
	await(&child, state, NULL);
	ok(prb_tasks_create(child.target, &tasks));
	ok(prb_view_create(child.target->mem, &view));
	struct prb_error *err =
		prb_read_consistent(child.target, &tasks, view, attempt, tries, consistent);
	prb_view_destroy(view);
	prb_tasks_deinit(&tasks);
	finish(&child);
	return err;
}

static void test_what_was_half_made_is_read_again(void **state)
{
	static const enum prb_error_code codes[] = {PRB_ERROR_BAD_DATA, PRB_ERROR_FAULT};
	bool consistent;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct tries tries = {.failing = 5, .code = codes[i]};

		ok(read_child(spin, 'R', &tries, &consistent));
		assert_true(consistent);
		assert_int_equal(tries.made, 6);
	}
}

static void assert_fails(sleeper *does, char in_state, enum prb_error_code code, int least,
			 int most)
{
	struct tries tries = {.failing = 1000, .code = code};
	bool consistent;
	struct prb_error *err = read_child(does, in_state, &tries, &consistent);

	assert_non_null(err);
	assert_int_equal(err->code, code);
	prb_error_destroy(err);
	assert_uint_in_range(tries.made, least, most);
}

static void test_what_is_wrong_for_good_is_said_soon(void **state)
{
	(void)state;
	assert_fails(spin, 'R', PRB_ERROR_BAD_DATA, 10, 61);
	/* No running thread could complete the data. */
	assert_fails(sleep_on, 'S', PRB_ERROR_BAD_DATA, 1, 2);
	assert_fails(spin, 'R', PRB_ERROR_NOT_FOUND, 1, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_half_made_is_read_again),
		cmocka_unit_test(test_what_is_wrong_for_good_is_said_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

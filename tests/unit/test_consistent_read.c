/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Repeated reads of half-made data, in running and in sleeping children. */
#include "dump/tasks/consistent_read.h"

#include "base/cleanup.h"
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

/* Memory of the child too, which is forked. */
static volatile uint64_t pages[16][64 * PRB_PAGE_WORDS] __attribute__((aligned(PRB_PAGE_SIZE)));

static void change_all(void *unused)
{
	(void)unused;
	for (;;)
		for (unsigned i = 0; i < 16; i++)
			pages[i][0]++;
}

struct elsewhere {
	struct prb_mem *target;
	struct prb_view *view;
	unsigned made;
};

static struct prb_error *read_elsewhere(void *context)
{
	struct elsewhere *e = context;
	uint64_t address = (uint64_t)pages[e->made++ % 16], word, later;

	PRB_TRY(prb_mem_read_u64(prb_view_mem(e->view), address, &word));
	later = word;
	/* Nothing is stopped for the first attempt: what it reads is made to change. */
	while (e->made == 1 && later == word)
		PRB_TRY(prb_mem_read_u64(e->target, address, &later));
	return NULL;
}

static void test_what_is_elsewhere_each_time_is_read_in_a_stop(void **state)
{
	struct elsewhere e = {};
	struct prb_tasks tasks = {};
	struct child child;
	bool consistent;
	uint64_t word = 0;

	(void)state;
	start(&child, change_all, NULL);
	await(&child, 'R', NULL);
	while (!word)
		ok(prb_mem_read_u64(child.target->mem, (uint64_t)pages[15], &word));
	ok(prb_tasks_create(child.target, &tasks));
	e.target = child.target->mem;
	ok(prb_view_create(e.target, &e.view));
	ok(prb_read_consistent(child.target, &tasks, e.view, read_elsewhere, &e, &consistent));
	assert_true(consistent);
	assert_int_equal(e.made, 7);
	prb_view_destroy(e.view);
	prb_tasks_deinit(&tasks);
	finish(&child);
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
		cmocka_unit_test(test_what_is_elsewhere_each_time_is_read_in_a_stop),
		cmocka_unit_test(test_what_is_wrong_for_good_is_said_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

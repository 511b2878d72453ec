/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Asyncio tasks in hostile memory: bytes of real processes changed at random. Reading always ends,
 * with a valid result.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "python/asyncio/tasks.h"
#include "target/mem/view.h"
#include "tests/unit/liar.h"
#include "tests/unit/object_child.h"

static const char program[] = "tests/live/programs/asyncio_shapes.py";

struct reading {
	struct prb_target *target;
	struct prb_modules *modules;
	struct prb_view *view;
	struct prb_pythons pythons;
	struct prb_py_threads threads;
};

static void open_reading(struct child *child, struct reading *r)
{
	*r = (struct reading){};
	assert_null(prb_target_open_process(child->pid, &r->target));
	assert_null(prb_modules_create(r->target, &r->modules));
	assert_null(prb_view_create(r->target->mem, &r->view));
	assert_null(prb_pythons_find(r->modules, r->view, &r->pythons));
	assert_int_equal(r->pythons.list.count, 1);
	assert_null(prb_python_threads(r->pythons.list.items[0], r->target->mem, &r->threads));
}

static void close_reading(struct reading *r)
{
	prb_py_threads_deinit(&r->threads);
	prb_pythons_deinit(&r->pythons);
	prb_view_destroy(r->view);
	prb_modules_destroy(r->modules);
	prb_target_destroy(r->target);
}

/* Invariants of every result. */
static void check(const struct prb_asyncio_tasks *tasks)
{
	const struct prb_asyncio_task *task;
	const size_t *index;

	prb_vec_each (task, &tasks->list) {
		assert_non_null(prb_asyncio_task_state_name(task->state));
		assert_int_equal(!task->waits_kind, !task->waits_for);
		prb_vec_each (index, &task->awaiters)
			assert_true(*index < tasks->list.count);
		prb_vec_each (index, &task->children)
			assert_true(*index < tasks->list.count);
	}
}

/* Number of tasks read. */
static size_t read_once(struct reading *r, struct prb_mem *mem)
{
	struct prb_asyncio_tasks tasks;
	struct prb_error *err = prb_asyncio_tasks_read(r->pythons.list.items[0], r->modules, mem,
						       &r->threads, true, &tasks);
	size_t count = 0;

	if (!err) {
		check(&tasks);
		count = tasks.list.count;
		prb_asyncio_tasks_deinit(&tasks);
	}
	prb_error_destroy(err);
	return count;
}

static void lie(struct child *child, unsigned rounds)
{
	static const unsigned rates[] = {300, 3000, 30000, 300000};
	struct liar liar = {.mem = {&liar_ops}, .random = 88172645463325252ull};
	struct reading r;

	open_reading(child, &r);
	liar.base = prb_view_mem(r.view);
	assert_true(read_once(&r, liar.base) >= 40);
	for (unsigned i = 0; i < rounds; i++) {
		liar.rate = rates[i % 4];
		read_once(&r, &liar.mem);
	}
	close_reading(&r);
}

static bool has_tasks(json_t *interpreter)
{
	int minor = 0;

	sscanf(json_string_value(json_object_get(interpreter, "version")), "3.%d", &minor);
	return minor >= 7;
}

static void test_lies(void **state)
{
	json_t *all = interpreters(), *interpreter;
	unsigned rounds = getenv("PROBING_LONG") ? 400 : 40;
	size_t i;

	(void)state;
	json_array_foreach(all, i, interpreter)
	{
		struct child child;
		char line[16];

		if (!has_tasks(interpreter))
			continue;
		child_start(interpreter, program, &child);
		assert_non_null(fgets(line, sizeof(line), child.lines));
		assert_string_equal(line, "ready\n");
		lie(&child, rounds);
		child_stop(&child);
	}
	json_decref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_lies)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

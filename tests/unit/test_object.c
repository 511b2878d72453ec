/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compares values read from outside with the process's own repr(): for each interpreter, a child
 * makes the values of objects.py and prints them.
 */
#include <signal.h>

#include "tests/unit/object_child.h"

static const struct prb_repr_options no_limits = {
	.max_depth = 50,
	.max_items = 1000000,
	.max_text = 1000000,
	.max_total = 100000000,
};

static bool check_value(struct child *child, const struct child_value *value)
{
	prb_auto_str struct prb_str text = {};

	assert_null(prb_object_repr(&child->py, child->mem, value->address, &no_limits, &text));
	if (strcmp(prb_str_text(&text), value->text) == 0)
		return true;
	print_error("%s: %s\n  is  %.300s\n  not %.300s\n", child->name, value->name, value->text,
		    prb_str_text(&text));
	return false;
}

static unsigned check_interpreter(json_t *interpreter)
{
	unsigned wrong = 0, count = 0;
	struct child_value value;
	struct child child;

	child_start(interpreter, values_program, &child);
	for (; child_next(&child, &value); count++) {
		wrong += !check_value(&child, &value);
		child_value_free(&value);
	}
	print_message("%s: %u of %u values differ\n", child.name, wrong, count);
	assert_true(count > 300);
	child_stop(&child);
	return wrong;
}

static void test_same_as_the_process(void **state)
{
	json_t *all = interpreters(), *interpreter;
	unsigned wrong = 0;
	size_t i;

	(void)state;
	assert_true(json_array_size(all) > 0);
	json_array_foreach(all, i, interpreter) wrong += check_interpreter(interpreter);
	json_decref(all);
	assert_int_equal(wrong, 0);
}

/* Values cut by the limits show the number of the rest. */
static const struct {
	const char *name, *text;
	struct prb_repr_options options;
	bool if_there; /* of a package that most interpreters do not have */
} limited[] = {
	{"list(range(100))", "[0, 1, 2, …+97]", {.max_items = 3}},
	{"set(range(40))", "{0, …+39}", {.max_items = 1}},
	{"'x' * 300", "'xxxxxxxxxx'…+290", {.max_text = 10}},
	{"b'y' * 500", "b'yyy'…+497", {.max_text = 3}},
	{"10**40 + 7", "1000…+37", {.max_text = 4}},
	{"[[], [[]], [[[1]]]]", "[[], [[]], [[…+1]]]", {.max_depth = 2}},
	{"[[], [[]], [[[1]]]]", "[…", {.max_total = 1}},
	{"Point(1, 2)", "Point(x=1, …+1)", {.max_items = 1}},
	{"Point(1, 2)", "Point(x=1, …+1)", {.max_items = 1}},
	{"collections.deque(range(200))", "deque([0, 1, …+198])", {.max_items = 2}},
	{"torch.arange(60).reshape(4, 15)[:, 1:]",
	 "tensor([[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], [16, …+13], …+2], shape=(4, "
	 "14), "
	 "dtype=int64, device='cpu')",
	 {.max_items = 15},
	 .if_there = true},
	{"torch.full((5000,), float('nan'))",
	 "tensor([nan, …+4999], shape=(5000,), dtype=float32, device='cpu', nan=4096 of the first "
	 "4096)",
	 {.max_items = 1},
	 .if_there = true},
	{"list(range(100))",
	 "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, …+86]",
	 {.max_total = 60}},
};

static unsigned check_limits(struct child *child, const struct child_value *value)
{
	unsigned checked = 0;

	for (size_t i = 0; i < sizeof(limited) / sizeof(limited[0]); i++) {
		prb_auto_str struct prb_str text = {};

		if (strcmp(limited[i].name, value->name) != 0)
			continue;
		assert_null(prb_object_repr(&child->py, child->mem, value->address,
					    &limited[i].options, &text));
		assert_string_equal(prb_str_text(&text), limited[i].text);
		checked += !limited[i].if_there;
	}
	return checked;
}

static unsigned expected_limits(void)
{
	unsigned count = 0;

	for (size_t i = 0; i < sizeof(limited) / sizeof(limited[0]); i++)
		count += !limited[i].if_there;
	return count;
}

static bool sum_entry(void *context, uint64_t key, uint64_t value)
{
	(void)key;
	(void)value;
	++*(unsigned *)context;
	return true;
}

/* The building blocks, on an instance and a dict of objects.py. */
static unsigned check_blocks(struct child *child, const struct child_value *value)
{
	prb_auto_str struct prb_str text = {};
	uint64_t found;
	int64_t number;
	unsigned entries = 0;

	if (strcmp(value->name, "Plain(1, 2)") == 0) {
		assert_null(
			prb_object_attribute(&child->py, child->mem, value->address, "y", &found));
		assert_null(prb_object_int(&child->py, child->mem, found, &number));
		assert_int_equal(number, 2);
		assert_null(prb_object_type_name(&child->py, child->mem, value->address, &text));
		assert_string_equal(prb_str_text(&text), "Plain");

		struct prb_error *err = prb_object_attribute(&child->py, child->mem, value->address,
							     "missing", &found);

		assert_true(prb_error_catch(&err, PRB_ERROR_NOT_FOUND));
		return 1;
	}
	if (strcmp(value->name, "Slots(1, 2)") == 0) {
		assert_null(
			prb_object_attribute(&child->py, child->mem, value->address, "b", &found));
		assert_null(prb_object_int(&child->py, child->mem, found, &number));
		assert_int_equal(number, 2);
		return 1;
	}
	if (strncmp(value->name, "{str(i): i", 10) == 0) {
		assert_null(
			prb_object_dict_get(&child->py, child->mem, value->address, "77", &found));
		assert_null(prb_object_int(&child->py, child->mem, found, &number));
		assert_int_equal(number, 77);
		assert_null(prb_object_dict_each(&child->py, child->mem, value->address, sum_entry,
						 &entries));
		assert_int_equal(entries, 300);
		return 1;
	}
	if (strcmp(value->name, "-2**63") == 0) {
		assert_null(prb_object_int(&child->py, child->mem, value->address, &number));
		assert_true(number == INT64_MIN);
		return 1;
	}
	if (strcmp(value->name, "2**63") == 0) {
		struct prb_error *err =
			prb_object_int(&child->py, child->mem, value->address, &number);

		assert_true(prb_error_catch(&err, PRB_ERROR_BAD_DATA));
		return 1;
	}
	return 0;
}

static void test_limits_and_blocks(void **state)
{
	json_t *all = interpreters(), *interpreter;
	size_t i;

	(void)state;
	json_array_foreach(all, i, interpreter)
	{
		unsigned limits = 0, blocks = 0;
		struct child_value value;
		struct child child;

		child_start(interpreter, values_program, &child);
		while (child_next(&child, &value)) {
			limits += check_limits(&child, &value);
			blocks += check_blocks(&child, &value);
			child_value_free(&value);
		}
		child_stop(&child);
		assert_int_equal(limits, expected_limits());
		assert_int_equal(blocks, 5);
	}
	json_decref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_the_process),
		cmocka_unit_test(test_limits_and_blocks),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Objects in hostile memory: bytes of a real process changed at random, and arbitrary addresses.
 * Reading always ends, stays within the limits and leaks nothing.
 */
#include <limits.h>
#include <signal.h>

#include "base/checked.h"
#include "python/repr/core/attributes.h"
#include "python/repr/core/items.h"
#include "tests/unit/liar.h"
#include "tests/unit/object_child.h"
#include "target/target.h"
#include "values/part.h"

static const struct prb_repr_options limits = {
	.max_depth = 5,
	.max_items = 8,
	.max_text = 50,
	.max_total = 500,
};

static bool nothing(void *context, uint64_t key, uint64_t value)
{
	(void)key;
	(void)value;
	return ++*(unsigned *)context < 1000;
}

static bool any_attribute(void *context, const struct prb_attribute *attribute)
{
	assert_non_null(attribute->name);
	assert_true(attribute->object || attribute->text);
	return ++*(unsigned *)context < 1000;
}

/* Looks up parts of the object, like an expression. */
static void ask_parts(struct prb_python *py, struct prb_mem *mem, uint64_t address)
{
	static const char *const names[] = {"x", "__class__", "__name__", "args", "shape", "value"};
	struct prb_part_wanted wanted = {.object = address, .text_max = limits.max_total};
	const struct prb_part_answer *answer;
	static const struct prb_target_ops nothing = {};
	struct prb_target without_extensions = {.ops = &nothing};
	struct prb_parts *parts;
	bool needs_code;

	py->target = &without_extensions;
	assert_null(prb_parts_create(py, mem, &parts));
	for (wanted.part = PRB_PART_SELF; wanted.part <= PRB_PART_TEXT; wanted.part++) {
		for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
			wanted.name = names[i];
			wanted.index = (int64_t)i - 1;
			prb_error_destroy(prb_parts_read(parts, &wanted, &answer, &needs_code));
			assert_true(answer->text.length < 1 << 16);
			if (wanted.part != PRB_PART_ATTRIBUTE && wanted.part != PRB_PART_INDEX)
				break;
		}
	}
	prb_parts_destroy(parts);
	py->target = NULL;
}

/* Calls all functions of python/repr/core/repr.h, attributes.h and items.h on one address. */
static void ask(struct prb_python *py, struct prb_mem *mem, uint64_t address)
{
	prb_auto_str struct prb_str text = {};
	unsigned count = 0;
	uint64_t found;
	int64_t number;

	assert_null(prb_object_repr(py, mem, address, &limits, &text));
	assert_true(text.length > 0 && text.length <= limits.max_total + strlen("…"));
	prb_error_destroy(prb_object_type_name(py, mem, address, &text));
	prb_error_destroy(prb_object_str(py, mem, address, 100, &text));
	prb_error_destroy(prb_object_dict_each(py, mem, address, nothing, &count));
	prb_error_destroy(prb_object_dict_get(py, mem, address, "a", &found));
	prb_error_destroy(prb_object_attribute(py, mem, address, "x", &found));
	prb_error_destroy(
		prb_object_attributes(py, mem, address, UINT_MAX, any_attribute, &count, NULL));
	prb_error_destroy(prb_object_items(py, mem, address, false, nothing, &count, NULL));
	prb_error_destroy(prb_object_int(py, mem, address, &number));
}

static void lie_about(struct child *child, uint64_t address, unsigned rounds)
{
	static const unsigned rates[] = {20, 100, 500, 3000};
	struct liar liar = {
		.mem = {&liar_ops},
		.base = child->mem,
		.random = 88172645463325252ull ^ address,
	};

	for (unsigned i = 0; i < rounds; i++) {
		liar.rate = rates[i % 4];
		ask(&child->py, &liar.mem, address);
	}
	liar.rate = 100;
	ask_parts(&child->py, &liar.mem, address);
	liar.rate = 0;
	/* Addresses within an object. */
	for (unsigned offset = 8; offset < 128; offset += 8)
		ask(&child->py, &liar.mem, address + offset);
	ask(&child->py, &liar.mem, address + 1);
}

static void test_lies(void **state)
{
	json_t *all = interpreters(), *interpreter;
	unsigned rounds = getenv("PROBING_LONG") ? 400 : 2;
	size_t i;

	(void)state;
	json_array_foreach(all, i, interpreter)
	{
		struct child_value value;
		struct child child;

		child_start(interpreter, values_program, &child);
		while (child_next(&child, &value)) {
			lie_about(&child, value.address, rounds);
			child_value_free(&value);
		}
		child_stop(&child);
	}
	json_decref(all);
}

static void test_garbage_addresses(void **state)
{
	static const uint64_t addresses[] = {1,
					     8,
					     4096,
					     UINT64_MAX,
					     UINT64_MAX - 7,
					     UINT64_MAX - 4095,
					     0x7fffffffffff,
					     0xffff800000000000};
	json_t *all = interpreters();
	struct child_value value;
	struct child child;

	(void)state;
	child_start(json_array_get(all, 0), values_program, &child);
	while (child_next(&child, &value))
		child_value_free(&value);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		prb_auto_str struct prb_str text = {};
		prb_auto_str struct prb_str expected = {};

		ask(&child.py, child.mem, addresses[i]);
		prb_str_printf(&expected, "<unreadable at %#llx>",
			       (unsigned long long)addresses[i]);
		assert_null(prb_object_repr(&child.py, child.mem, addresses[i], NULL, &text));
		assert_string_equal(prb_str_text(&text), prb_str_text(&expected));
	}
	child_stop(&child);
	json_decref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_garbage_addresses),
		cmocka_unit_test(test_lies),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

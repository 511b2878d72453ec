/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as an object whose parts are read: its attributes, items, length, names, columns. The
 * input chooses a version and a part; the rest is memory, repeated over the whole address space.
 */
#include <ctype.h>

#include "tests/fuzz/input.h"

#include "python/repr/arrays/polars.h"
#include "values/part.h"
#include "values/expression_private.h"

enum { HEADER = 4, CHOICES = 64, TEXT_MAX = 500 };

static const struct {
	uint16_t version;
	bool free_threaded;
} builds[] = {{0x0304, false}, {0x0306, false}, {0x0309, false}, {0x030a, false}, {0x030b, false},
	      {0x030c, false}, {0x030d, false}, {0x030d, true},	 {0x030e, false}, {0x030f, false}};

static const struct prb_repr_options limits = {
	.max_depth = 4,
	.max_items = 8,
	.max_text = 64,
	.max_total = 400,
};

/* Names that some reader knows, and names that none does. */
static const char *const names[] = {
	"x",	     "__dict__", "__class__", "__name__", "__qualname__", "__mro__",	"args",
	"__cause__", "__code__", "name",      "value",	  "shape",	  "dtype",	"ndim",
	"device",    "columns",	 "index",     "size",	  "weight",	  "_modules",	"height",
	"user",	     "fget",	 "start",     "__doc__",  "__module__",	  "__context__"};

static void by_part(struct prb_parts *parts, uint64_t object, const uint8_t *choices)
{
	struct prb_part_wanted wanted = {
		.object = object,
		.type = choices[0] & 1 ? (uint64_t)choices[1] * 8 : 0,
		.name = names[choices[2] % PRB_ARRAY_SIZE(names)],
		.index = (int8_t)choices[3],
		.text_max = TEXT_MAX,
	};
	const struct prb_part_answer *answer;
	bool needs_code;

	for (wanted.part = PRB_PART_SELF; wanted.part <= PRB_PART_TEXT; wanted.part++) {
		struct prb_error *err = prb_parts_read(parts, &wanted, &answer, &needs_code);

		if (!answer || (!err && needs_code))
			abort();
		prb_error_destroy(err);
	}
}

static struct prb_search search_of(struct prb_repr *r, const struct prb_py_scope *scope,
				   uint64_t object, const char *text)
{
	return (struct prb_search){.r = r,
				   .scope = scope,
				   .text = text,
				   .at = text,
				   .from = text,
				   .looked_into = 1,
				   .object = object};
}

static struct prb_error *found_already(struct prb_search *s)
{
	(void)s;
	return NULL;
}

/* The names go to a shell's completion, so they must be harmless. */
static void check_names(const struct prb_str *names_found)
{
	for (size_t i = 0; i < names_found->length; i++)
		if (!isalnum((unsigned char)names_found->data[i]) &&
		    !strchr("_.\n", names_found->data[i]))
			abort();
}

static void by_search(struct prb_python *py, struct prb_mem *mem, uint64_t object)
{
	static struct prb_error *(*const steps[])(struct prb_search * s) = {
		prb_search_vars, prb_search_dir, prb_search_len};
	const struct prb_py_scope scope = {};

	for (size_t i = 0; i <= PRB_ARRAY_SIZE(steps); i++) {
		prb_auto_str struct prb_str text = {}, found = {};
		prb_auto_repr struct prb_repr r;
		struct prb_search s = search_of(&r, &scope, object, "x.");

		prb_repr_init(&r, py, mem, &limits, &text);
		prb_error_destroy(i < PRB_ARRAY_SIZE(steps)
					  ? steps[i](&s)
					  : prb_search_complete(&s, found_already, &found));
		check_names(&found);
		if (s.value.length > limits.max_total + strlen("…"))
			abort();
		prb_str_deinit(&s.value);
	}
}

/* A column of polars, with types that inputs would hardly reach. */
static void by_polars(struct prb_python *py, struct prb_mem *mem, uint64_t object,
		      const uint8_t *choices)
{
	static const char *const types[] = {"Int64", "Datetime", "Duration", "String"};
	prb_auto_str struct prb_str text = {};
	prb_auto_repr struct prb_repr r;
	struct prb_polars_series series = {
		.name = {object, choices[0]},
		.dtype = {.name = types[choices[1] % 4],
			  .kind = choices[2] % (PRB_POLARS_TIME + 1),
			  .number = 1 + choices[3] % 12,
			  .width = 1u << choices[4] % 5,
			  .arrow = choices[5],
			  .unit = choices[6] % 3,
			  .zone = {choices[7] & 1 ? object : 0, choices[7]}},
		.length = choices[8],
		.chunks = object,
		.chunk_count = choices[9],
		.single = choices[10] & 1 ? object : 0,
	};

	prb_repr_init(&r, py, mem, &limits, &text);
	prb_error_destroy(prb_polars_put_dtype(&r, &series.dtype));
	prb_error_destroy(prb_polars_put_text(&r, series.name));
	prb_error_destroy(prb_polars_put_values(&r, &series));

	struct prb_error *err = prb_polars_column_open(&r, object, choices[8], &series);

	if (!err)
		err = prb_polars_put_values(&r, &series);
	prb_error_destroy(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct prb_target_ops nothing = {};
	struct prb_target target = {.ops = &nothing}; /* without extensions */
	struct prb_python py = {.target = &target};
	struct prb_parts *parts;

	if (size < HEADER + CHOICES)
		return 0;

	struct repeated_memory memory =
		repeat(&(struct input){data + HEADER, size - HEADER}, data[1] & 1);
	uint64_t object = (uint64_t)data[3] * 8;

	py.layout =
		*prb_layout_table(builds[data[0] % PRB_ARRAY_SIZE(builds)].version,
				  builds[data[0] % PRB_ARRAY_SIZE(builds)].free_threaded, false);
	py.layout.behaviour = prb_behaviour_find(py.layout.version);
	if (prb_parts_create(&py, &memory.mem, &parts))
		abort();
	by_part(parts, object, data);
	prb_parts_destroy(parts);
	by_search(&py, &memory.mem, object);
	by_polars(&py, &memory.mem, object, data + HEADER);
	return 0;
}

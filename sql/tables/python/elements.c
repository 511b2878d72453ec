/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>

#include "base/cleanup.h"
#include "python/repr/arrays/elements.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/interpreters.h"
#include "sql/tables/shared/values.h"

enum { NUMBER, VALUE, DTYPE, SHAPE, ERROR, ADDRESS };

static const struct prb_column columns[] = {
	[NUMBER] = {"number", PRB_COLUMN_INTEGER,
		    "Which one it is, from 0; the last index runs fastest",
		    .flags = PRB_COLUMN_KEY | PRB_COLUMN_RANGE},
	[VALUE] = {"value", PRB_COLUMN_ANY,
		   "It, as a number; NULL for NaN and over 9223372036854775807"},
	[DTYPE] = {"dtype", PRB_COLUMN_TEXT, "Type of the elements"},
	[SHAPE] = {"shape", PRB_COLUMN_TEXT, "Sizes of the array, as (2, 3)"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why the object, or the element, could not be read"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Argument: the array, by its id()",
		     .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN | PRB_COLUMN_REQUIRED},
	{},
};

struct state {
	struct prb_elements elements;
	struct prb_str shape;
	uint64_t object;
	uint64_t to; /* the first element that is not asked for any more */
};

static void end(void *state)
{
	struct state *s = state;

	prb_str_deinit(&s->shape);
	free(s);
}

static void put_shape(struct state *s)
{
	prb_str_putc(&s->shape, '(');
	for (uint64_t i = 0; i < s->elements.dimensions; i++)
		prb_str_printf(&s->shape, "%s%llu", i ? ", " : "",
			       (unsigned long long)s->elements.shape[i]);
	prb_str_puts(&s->shape, s->elements.dimensions == 1 ? ",)" : ")");
}

/* In whichever Python takes it for an object. */
static struct prb_error *find(struct prb_scan *scan, struct state *s)
{
	struct prb_repr_options options = prb_instant_repr(scan->instant);
	struct prb_error *err = NULL;
	struct prb_pythons *pythons;
	struct prb_mem *mem;
	bool found = false;

	PRB_TRY(prb_instant_pythons(scan->instant, &pythons, &mem));
	for (size_t i = 0; i < pythons->list.count && !found; i++) {
		struct prb_objects *objects;

		prb_error_destroy(prb_steal(&err));
		PRB_TRY(prb_objects_create(pythons->list.items[i], mem, &options, &objects));
		err = prb_objects_elements(objects, s->object, &s->elements);
		prb_objects_destroy(objects);
		found = !err;
	}
	if (!found && !err)
		err = prb_error_create(PRB_ERROR_NOT_FOUND, "there is no Python in it");
	return err;
}

static void find_range(const struct prb_scan *scan, uint64_t count, uint64_t *from, uint64_t *to)
{
	double low = 0, high = (double)count;

	prb_scan_range(scan, NUMBER, &low, &high);
	*from = low >= (double)count ? count : (uint64_t)low;
	*to = high < 0 ? 0 : high >= (double)count ? count : (uint64_t)high + 1;
}

static struct prb_error *begin(struct prb_scan *scan)
{
	struct state *s = calloc(1, sizeof(*s));
	struct prb_error *err;
	bool known;

	if (!s)
		return prb_error_nomem();
	scan->state = s;
	scan->end = end;
	PRB_TRY(prb_value_address(scan, ADDRESS, "an array", "weights", &s->object, &known));
	if (!known)
		return NULL;
	err = find(scan, s);
	if (err)
		return prb_value_failure(scan, ADDRESS, ERROR, s->object, err);
	put_shape(s);
	find_range(scan, s->elements.count, &scan->position, &s->to);
	return s->shape.failed ? prb_error_nomem() : NULL;
}

/* An element that cannot be read is a row with a reason, and the last one: those behind it lie in
 * the same memory. */
static struct prb_error *put(struct prb_scan *scan, struct state *s)
{
	struct prb_object_number number;
	struct prb_error *err;

	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, ADDRESS, (int64_t)s->object);
	prb_put_integer(scan, NUMBER, (int64_t)scan->position);
	prb_put_text(scan, DTYPE, s->elements.dtype);
	prb_put_text(scan, SHAPE, prb_str_text(&s->shape));
	err = prb_elements_read(&s->elements, prb_instant_target(scan->instant)->mem,
				scan->position, &number);
	if (err) {
		s->to = scan->position;
		return prb_put_reason(scan, ERROR, err);
	}
	if (number.kind == PRB_NUMBER_INTEGER)
		prb_put_integer(scan, VALUE, number.integer);
	if (number.kind == PRB_NUMBER_REAL)
		prb_put_real(scan, VALUE, number.real);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	struct state *s;

	if (!scan->state)
		PRB_TRY(begin(scan));
	for (s = scan->state; scan->position < s->to; scan->position++) {
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		PRB_TRY(put(scan, s));
	}
	return NULL;
}

const struct prb_table prb_table_python_elements = {
	.schema = "python",
	.name = "elements",
	.doc = "Numbers in an array of numpy, a tensor on the CPU or an image of Pillow (with a "
	       "palette: its colours), as python.elements(address); of a running process not of "
	       "one "
	       "instant",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY | PRB_TABLE_LONG,
	.rows = 100000,
	.scan = scan,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * DataFrame, Series and Index of pandas, as they would be written, with their shape:
 * DataFrame({'step': int64[0, 1, …+98]}, index=RangeIndex(start=0, stop=100, step=1), shape=(100,
 * 1)). A frame keeps columns of one dtype together in a block, whose placement says which columns
 * these are. Unknown layouts are shown as an ordinary object.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"
#include "python/repr/arrays/pandas.h"

enum { ROWS = 5, BLOCK_COST = 16, SLICE_PARTS = 3 };

/* The manager of a frame or series. */
struct frame {
	uint64_t blocks, block_count; /* items of a tuple */
	uint64_t axes[2];	      /* columns and index of a frame, index of a series */
	uint64_t axis_count;
};

static bool is_tuple(const struct prb_type *type)
{
	return prb_type_is(type, "tuple");
}

static bool is_list(const struct prb_type *type)
{
	return prb_type_is(type, "list");
}

static bool is_placement(const struct prb_type *type)
{
	return !strcmp(prb_type_short_name(type), "BlockPlacement");
}

static bool is_slice_or_array(const struct prb_type *type)
{
	return prb_type_is(type, "slice") || prb_type_is(type, "numpy.ndarray");
}

/* All else that a block has. */
static bool is_values(const struct prb_type *type)
{
	return !is_placement(type) && strcmp(prb_type_short_name(type), "BlockValuesRefs") != 0 &&
	       strncmp(type->name, "weakref", 7) != 0 && !prb_type_is(type, "int");
}

/* An attribute in the __dict__ or a slot, or else a word of that kind. */
static struct prb_error *find_member(struct prb_repr *r, uint64_t object, const char *name,
				     prb_part_wanted_fn *wanted, uint64_t *ret)
{
	struct prb_error *err = prb_repr_attribute(r, object, name, ret);

	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND)
		       ? prb_repr_find_word(r, object, wanted, ret)
		       : err;
}

static struct prb_error *open_frame(struct prb_repr *r, uint64_t object, struct frame *ret)
{
	struct prb_type *type;
	uint64_t manager, axes, items;
	struct prb_error *err = prb_repr_instance_get(r, object, "_mgr", &manager);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) /* before pandas 1.1 */
		err = prb_repr_instance_get(r, object, "_data", &manager);
	PRB_TRY(err);
	PRB_TRY(prb_repr_type_of(r, manager, &type));
	if (!strstr(prb_type_short_name(type), "BlockManager"))
		return prb_repr_bad(object, "a frame of another kind");
	PRB_TRY(find_member(r, manager, "blocks", is_tuple, &ret->blocks));
	PRB_TRY(find_member(r, manager, "axes", is_list, &axes));
	PRB_TRY(prb_repr_tuple(r, ret->blocks, NULL, 0, &ret->block_count));
	PRB_TRY(prb_repr_list(r, axes, &items, &ret->axis_count));
	if (ret->axis_count < 1 || ret->axis_count > 2)
		return prb_repr_bad(object, "a frame of other dimensions");
	return prb_repr_words(r, items, ret->axis_count, ret->axes);
}

static struct prb_error *block_at(struct prb_repr *r, const struct frame *frame, uint64_t index,
				  uint64_t *ret)
{
	PRB_TRY(prb_repr_walk(r, BLOCK_COST));
	return prb_repr_word(r, frame->blocks + (uint64_t)r->layout->tuple_items + index * 8, ret);
}

/* Which columns a block has. */
struct placement {
	bool is_slice;
	int64_t slice[SLICE_PARTS]; /* start, stop, step */
	struct prb_frame_column array;
};

static struct prb_error *read_placement(struct prb_repr *r, uint64_t block, struct placement *ret)
{
	uint64_t placement, part, words[SLICE_PARTS];

	PRB_TRY(find_member(r, block, "_mgr_locs", is_placement, &placement));
	PRB_TRY(prb_repr_find_word(r, placement, is_slice_or_array, &part));
	ret->is_slice = prb_repr_is(r, part, "slice");
	if (!ret->is_slice)
		return prb_frame_column_open(r, part, 0, &ret->array);
	PRB_TRY(prb_repr_words(r, part + (uint64_t)r->layout->object_size, SLICE_PARTS, words));
	ret->slice[2] = 1;
	for (int i = 0; i < SLICE_PARTS; i++)
		if (!prb_repr_is_none(r, words[i]))
			PRB_TRY(prb_repr_int(r, words[i], &ret->slice[i]));
	return ret->slice[2] ? NULL : prb_repr_bad(block, "a slice without a step");
}

/* The row of the block that is the column; *found is false if it is none of its own. */
static struct prb_error *row_of(struct prb_repr *r, const struct placement *placement,
				int64_t column, uint64_t *row, bool *found)
{
	const struct prb_frame_column *array = &placement->array;
	int64_t start = placement->slice[0], step = placement->slice[2], place;

	*found = false;
	if (placement->is_slice) {
		bool inside = step > 0 ? column >= start && column < placement->slice[1]
				       : column <= start && column > placement->slice[1];

		*found = inside && (column - start) % step == 0;
		*row = *found ? (uint64_t)((column - start) / step) : 0;
		return NULL;
	}
	if (array->kind != PRB_FRAME_ARRAY)
		return NULL;
	for (*row = 0; *row < array->count && !*found; ++*row) {
		PRB_TRY(prb_repr_walk(r, 1));
		PRB_TRY(prb_ndarray_int(r, &array->dtype, array->first + *row * array->stride,
					&place));
		if (place == column) {
			*found = true;
			return NULL;
		}
	}
	return NULL;
}

/* The values of one column, in whichever block they are. */
static struct prb_error *open_column(struct prb_repr *r, const struct frame *frame, uint64_t number,
				     struct prb_frame_column *ret)
{
	uint64_t block, row, values;
	struct placement placement;
	bool found;

	for (uint64_t i = 0; i < frame->block_count; i++) {
		PRB_TRY(block_at(r, frame, i, &block));
		PRB_TRY(read_placement(r, block, &placement));
		PRB_TRY(row_of(r, &placement, (int64_t)number, &row, &found));
		if (!found)
			continue;
		PRB_TRY(find_member(r, block, "values", is_values, &values));
		return prb_frame_column_open(r, values, row, ret);
	}
	return prb_repr_bad(frame->blocks, "no block has the column");
}

/* Puts the first values of each column: as many as head(), unless more are requested. */
static struct prb_error *put_head(struct prb_repr *r, const struct prb_frame_column *column,
				  uint64_t count)
{
	unsigned max = r->max.max_items;
	struct prb_error *err;

	if (!r->max.long_attributes)
		r->max.max_items = PRB_MIN(max, (unsigned)ROWS);
	err = prb_frame_column_put_all(r, column, count);
	r->max.max_items = max;
	return err;
}

static void put_count(struct prb_repr *r, uint64_t count)
{
	if (count == PRB_FRAME_UNKNOWN)
		prb_str_putc(r->out, '?');
	else
		prb_str_printf(r->out, "%llu", (unsigned long long)count);
}

static struct prb_error *put_columns(struct prb_repr *r, const struct frame *frame,
				     const struct prb_frame_column *names, uint64_t rows)
{
	struct prb_items items = {.r = r, .total = names->count};
	struct prb_frame_column column;

	if (names->count == PRB_FRAME_UNKNOWN) {
		prb_str_puts(r->out, "…");
		return NULL;
	}
	while (prb_items_next(&items)) {
		PRB_TRY(prb_frame_column_put(r, names, items.done - 1));
		PRB_TRY(open_column(r, frame, items.done - 1, &column));
		prb_str_printf(r->out, ": %s", column.name);
		PRB_TRY(put_head(r, &column, rows));
	}
	return NULL;
}

/* ", name='x'" unless it has none. */
static struct prb_error *put_own_name(struct prb_repr *r, uint64_t object)
{
	uint64_t name;
	struct prb_error *err = prb_repr_instance_get(r, object, "_name", &name);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	if (prb_repr_is_none(r, name))
		return NULL;
	prb_str_puts(r->out, ", name=");
	return prb_repr_object(r, name);
}

static struct prb_error *put_frame(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_frame_column names, index;
	struct frame frame;

	PRB_TRY(open_frame(r, object, &frame));
	if (frame.axis_count != 2)
		return prb_repr_bad(object, "a frame of one dimension");
	PRB_TRY(prb_frame_column_open_index(r, frame.axes[0], &names));
	PRB_TRY(prb_frame_column_open_index(r, frame.axes[1], &index));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_puts(r->out, "({");
	PRB_TRY(put_columns(r, &frame, &names, index.count));
	prb_str_puts(r->out, "}, index=");
	PRB_TRY(prb_repr_object(r, frame.axes[1]));
	prb_str_puts(r->out, ", shape=(");
	put_count(r, index.count);
	prb_str_puts(r->out, ", ");
	put_count(r, names.count);
	prb_str_puts(r->out, "))");
	return NULL;
}

/* All but its name. */
static struct prb_error *put_values_and_index(struct prb_repr *r,
					      const struct prb_frame_column *values, uint64_t axis)
{
	struct prb_frame_column index;

	PRB_TRY(prb_frame_column_open_index(r, axis, &index));
	PRB_TRY(prb_frame_column_put_all(r, values, index.count));
	prb_str_puts(r->out, ", index=");
	PRB_TRY(prb_repr_object(r, axis));
	prb_str_puts(r->out, ", shape=(");
	put_count(r, index.count);
	prb_str_printf(r->out, ",), dtype=%s", values->name);
	return NULL;
}

static struct prb_error *put_series(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_frame_column values;
	struct frame frame;
	uint64_t block, inner;

	PRB_TRY(open_frame(r, object, &frame));
	if (frame.axis_count != 1 || frame.block_count != 1)
		return prb_repr_bad(object, "not a series");
	PRB_TRY(block_at(r, &frame, 0, &block));
	PRB_TRY(find_member(r, block, "values", is_values, &inner));
	PRB_TRY(prb_frame_column_open(r, inner, 0, &values));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	PRB_TRY(put_values_and_index(r, &values, frame.axes[0]));
	if (values.categories)
		PRB_TRY(prb_pandas_put_categories(r, inner, &values));
	PRB_TRY(put_own_name(r, object));
	prb_str_putc(r->out, ')');
	return NULL;
}

static struct prb_error *put_names(struct prb_repr *r, uint64_t index)
{
	uint64_t names;

	PRB_TRY(prb_repr_instance_get(r, index, "_names", &names));
	prb_str_puts(r->out, ", names=");
	return prb_repr_object(r, names);
}

static struct prb_error *put_index(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_frame_column values;
	uint64_t data;

	PRB_TRY(prb_frame_column_open_index(r, object, &values));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	if (values.kind == PRB_FRAME_RANGE) {
		prb_str_printf(r->out, "start=%lld, stop=%lld, step=%lld", (long long)values.start,
			       (long long)values.stop, (long long)values.step);
	} else {
		PRB_TRY(put_head(r, &values, PRB_FRAME_UNKNOWN));
		prb_str_puts(r->out, ", shape=(");
		put_count(r, values.count);
		prb_str_puts(r->out, ",)");
	}
	if (values.categories) {
		PRB_TRY(prb_repr_instance_get(r, object, "_data", &data));
		PRB_TRY(prb_pandas_put_categories(r, data, &values));
	}
	if (values.kind == PRB_FRAME_LEVELS)
		PRB_TRY(put_names(r, object));
	else if (values.kind != PRB_FRAME_RANGE)
		prb_str_printf(r->out, ", dtype=%s", values.name);
	PRB_TRY(put_own_name(r, object));
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_put_or_default(struct prb_repr *r, uint64_t object,
					  struct prb_type *type, prb_repr_handler *put)
{
	size_t start = r->out->length;
	unsigned depth = r->depth;
	struct prb_error *err;

	if (!prb_repr_enter(r, object, "…"))
		return NULL;
	err = put(r, object, type);
	r->depth = depth;
	if (!prb_error_catch(&err, PRB_ERROR_BAD_DATA) && !prb_error_catch(&err, PRB_ERROR_FAULT) &&
	    !prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return err;
	prb_str_truncate(r->out, start);
	return prb_repr_handle_default(r, object, type);
}

struct prb_error *prb_repr_handle_data_frame(struct prb_repr *r, uint64_t object,
					     struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_frame);
}

struct prb_error *prb_repr_handle_series(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_series);
}

struct prb_error *prb_repr_handle_index(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_index);
}

/* Of a frame: its shape is the lengths of its axes, the other way round. */
struct prb_error *prb_repr_pandas_part(struct prb_repr *r, uint64_t object, const char *name,
				       uint64_t *part, const char **type)
{
	struct frame frame;
	struct prb_frame_column axis;

	*part = 0;
	PRB_TRY(open_frame(r, object, &frame));
	if (!strcmp(name, "index") || (!strcmp(name, "columns") && frame.axis_count == 2)) {
		*part = frame.axes[*name == 'i' ? frame.axis_count - 1 : 0];
		return NULL;
	}
	if (!strcmp(name, "ndim")) {
		*type = "int";
		put_count(r, frame.axis_count);
		return NULL;
	}
	if (!strcmp(name, "name") && frame.axis_count == 1)
		return prb_repr_instance_get(r, object, "_name", part);
	if (strcmp(name, "shape") != 0)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "not known");
	*type = "tuple";
	prb_str_putc(r->out, '(');
	for (uint64_t i = frame.axis_count; i-- > 0;) {
		PRB_TRY(prb_frame_column_open_index(r, frame.axes[i], &axis));
		if (axis.count == PRB_FRAME_UNKNOWN)
			return prb_error_create(PRB_ERROR_NOT_FOUND, "not known");
		put_count(r, axis.count);
		prb_str_puts(r->out, i ? ", " : frame.axis_count == 1 ? ",)" : ")");
	}
	return NULL;
}

struct prb_error *prb_repr_pandas_column(struct prb_repr *r, uint64_t object, const char *name)
{
	struct prb_frame_column names, values;
	struct frame frame;
	uint64_t number;

	PRB_TRY(open_frame(r, object, &frame));
	if (frame.axis_count != 2)
		return prb_repr_bad(object, "a frame of one dimension");
	PRB_TRY(prb_frame_column_open_index(r, frame.axes[0], &names));
	PRB_TRY(prb_frame_column_find(r, &names, name, &number));
	PRB_TRY(open_column(r, &frame, number, &values));
	prb_str_puts(r->out, "Series(");
	PRB_TRY(put_values_and_index(r, &values, frame.axes[1]));
	prb_str_puts(r->out, ", name=");
	PRB_TRY(prb_frame_column_put(r, &names, number));
	prb_str_putc(r->out, ')');
	return NULL;
}

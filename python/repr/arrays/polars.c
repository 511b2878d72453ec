/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * DataFrame and Series of polars, as DataFrame({'step': Int64[0, 1, …+98]}, shape=(100, 1)). Their
 * classes in Python hold an object of Rust, in which a lock lies in front of the columns.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"
#include "python/repr/arrays/polars.h"

enum { COLUMN_SIZE = 160, COLUMN_COST = 128, COLUMNS_MAX = 1 << 16, ROWS = 5 };

struct frame {
	uint64_t columns, width, height;
};

/* The object of Rust that is an attribute of the one in Python. */
static struct prb_error *open_inner(struct prb_repr *r, uint64_t object, const char *attribute,
				    const char *class, uint64_t *ret)
{
	struct prb_type *type;
	const char *dot;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	PRB_TRY(prb_polars_check(r, type));
	PRB_TRY(prb_repr_attribute(r, object, attribute, ret));
	PRB_TRY(prb_repr_type_of(r, *ret, &type));
	dot = strrchr(type->name, '.');
	if (strcmp(dot ? dot + 1 : type->name, class) != 0)
		return prb_repr_bad(*ret, "not what polars keeps there");
	return NULL;
}

static struct prb_error *open_frame(struct prb_repr *r, uint64_t object, struct frame *ret)
{
	uint64_t inner, words[5]; /* lock; capacity, address and count of columns; height */

	PRB_TRY(open_inner(r, object, "_df", "PyDataFrame", &inner));
	PRB_TRY(prb_repr_words(r, inner + (uint64_t)r->layout->object_size, PRB_ARRAY_SIZE(words),
			       words));
	*ret = (struct frame){.columns = words[2], .width = words[3], .height = words[4]};
	if (ret->width > words[1] || ret->width > COLUMNS_MAX || ret->columns % 16)
		return prb_repr_bad(inner, "not a frame");
	return NULL;
}

static struct prb_error *open_column(struct prb_repr *r, const struct frame *frame, uint64_t number,
				     struct prb_polars_series *ret)
{
	return prb_polars_column_open(r, frame->columns + number * COLUMN_SIZE, frame->height, ret);
}

/* As many values as head() has, unless more are asked for. */
static struct prb_error *put_head(struct prb_repr *r, const struct prb_polars_series *series)
{
	unsigned max = r->max.max_items;
	struct prb_error *err;

	if (!r->max.long_attributes)
		r->max.max_items = PRB_MIN(max, (unsigned)ROWS);
	err = prb_polars_put_values(r, series);
	r->max.max_items = max;
	return err;
}

static struct prb_error *put_columns(struct prb_repr *r, const struct frame *frame)
{
	struct prb_items items = {.r = r, .total = frame->width};
	struct prb_polars_series column;

	while (prb_items_next(&items)) {
		PRB_TRY(open_column(r, frame, items.done - 1, &column));
		PRB_TRY(prb_polars_put_text(r, column.name));
		prb_str_puts(r->out, ": ");
		PRB_TRY(prb_polars_put_dtype(r, &column.dtype));
		PRB_TRY(put_head(r, &column));
	}
	return NULL;
}

static void put_shape(struct prb_repr *r, const struct frame *frame)
{
	prb_str_printf(r->out, "(%llu, %llu)", (unsigned long long)frame->height,
		       (unsigned long long)frame->width);
}

static struct prb_error *put_frame(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct frame frame;

	PRB_TRY(open_frame(r, object, &frame));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_puts(r->out, "({");
	PRB_TRY(put_columns(r, &frame));
	prb_str_puts(r->out, "}, shape=");
	put_shape(r, &frame);
	prb_str_putc(r->out, ')');
	return NULL;
}

static struct prb_error *open_series(struct prb_repr *r, uint64_t object,
				     struct prb_polars_series *ret)
{
	uint64_t inner;

	PRB_TRY(open_inner(r, object, "_s", "PySeries", &inner));
	return prb_polars_series_open(r, inner + (uint64_t)r->layout->object_size + 8, ret);
}

/* All but the name of the class. */
static struct prb_error *put_parts(struct prb_repr *r, const struct prb_polars_series *series)
{
	prb_str_putc(r->out, '(');
	PRB_TRY(prb_polars_put_values(r, series));
	prb_str_printf(r->out, ", shape=(%llu,), dtype=", (unsigned long long)series->length);
	PRB_TRY(prb_polars_put_dtype(r, &series->dtype));
	prb_str_puts(r->out, ", name=");
	PRB_TRY(prb_polars_put_text(r, series->name));
	prb_str_putc(r->out, ')');
	return NULL;
}

static struct prb_error *put_series(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_polars_series series;

	PRB_TRY(open_series(r, object, &series));
	PRB_TRY(prb_repr_put_name(r, type));
	return put_parts(r, &series);
}

struct prb_error *prb_repr_handle_polars_frame(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_frame);
}

struct prb_error *prb_repr_handle_polars_series(struct prb_repr *r, uint64_t object,
						struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_series);
}

static struct prb_error *put_names(struct prb_repr *r, const struct frame *frame)
{
	struct prb_items items = {.r = r, .total = frame->width};
	struct prb_polars_series column;

	prb_str_putc(r->out, '[');
	while (prb_items_next(&items)) {
		PRB_TRY(open_column(r, frame, items.done - 1, &column));
		PRB_TRY(prb_polars_put_text(r, column.name));
	}
	prb_str_putc(r->out, ']');
	return NULL;
}

static struct prb_error *frame_part(struct prb_repr *r, uint64_t object, const char *name,
				    const char **type)
{
	struct frame frame;
	bool height = !strcmp(name, "height");

	PRB_TRY(open_frame(r, object, &frame));
	if (!strcmp(name, "shape")) {
		*type = "tuple";
		put_shape(r, &frame);
	} else if (height || !strcmp(name, "width")) {
		*type = "int";
		prb_str_printf(r->out, "%llu",
			       (unsigned long long)(height ? frame.height : frame.width));
	} else if (!strcmp(name, "columns")) {
		*type = "list";
		return put_names(r, &frame);
	} else {
		return prb_error_create(PRB_ERROR_NOT_FOUND, "not known");
	}
	return NULL;
}

static struct prb_error *series_part(struct prb_repr *r, uint64_t object, const char *name,
				     const char **type)
{
	struct prb_polars_series series;

	PRB_TRY(open_series(r, object, &series));
	if (!strcmp(name, "name")) {
		*type = "str";
		return prb_polars_put_text(r, series.name);
	}
	if (!strcmp(name, "dtype")) {
		*type = "DataType";
		return prb_polars_put_dtype(r, &series.dtype);
	}
	if (strcmp(name, "shape") != 0)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "not known");
	*type = "tuple";
	prb_str_printf(r->out, "(%llu,)", (unsigned long long)series.length);
	return NULL;
}

struct prb_error *prb_repr_polars_part(struct prb_repr *r, uint64_t object, const char *name,
				       uint64_t *part, const char **type)
{
	struct prb_error *err = prb_repr_attribute(r, object, "_df", part);
	bool series = prb_error_catch(&err, PRB_ERROR_NOT_FOUND);

	*part = 0;
	PRB_TRY(err);
	return series ? series_part(r, object, name, type) : frame_part(r, object, name, type);
}

static struct prb_error *has_name(struct prb_repr *r, const struct prb_polars_series *column,
				  const char *name, bool *ret)
{
	size_t length = strlen(name);
	char own[256];

	*ret = column->name.length == length && length < sizeof(own);
	if (!*ret || !length)
		return NULL;
	PRB_TRY(prb_mem_read(r->mem, column->name.address, own, length));
	*ret = !memcmp(own, name, length);
	return NULL;
}

struct prb_error *prb_repr_polars_column(struct prb_repr *r, uint64_t object, const char *name)
{
	struct prb_polars_series column;
	struct frame frame;
	bool found;

	PRB_TRY(open_frame(r, object, &frame));
	for (uint64_t i = 0; i < frame.width; i++) {
		PRB_TRY(prb_repr_walk(r, COLUMN_COST));
		PRB_TRY(open_column(r, &frame, i, &column));
		PRB_TRY(has_name(r, &column, name, &found));
		if (!found)
			continue;
		prb_str_puts(r->out, "Series");
		return put_parts(r, &column);
	}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "no such column");
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Items of numpy's arrays that have fields, are arrays themselves or may be missing. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/arrays/numpy.h"
#include "python/repr/core/handlers.h"

enum { BYTES_MAX = 256, TYPE_VOID = 20, LEVELS = 8 };

/* A field by its name: where it lies in the item, and its type. */
static struct prb_error *read_field(struct prb_repr *r, const struct prb_dtype *dtype,
				    uint64_t name, uint64_t *offset, struct prb_dtype *ret)
{
	enum { NAME_CHARACTERS = 200, PARTS = 2 };
	prb_auto_str struct prb_str text = {};
	uint64_t entry, parts[PARTS], count;
	int64_t at;

	PRB_TRY(prb_repr_text(r, name, NAME_CHARACTERS, &text));
	PRB_TRY(prb_repr_dict_get(r, dtype->fields, prb_str_text(&text), &entry));
	PRB_TRY(prb_repr_tuple(r, entry, parts, PARTS, &count));
	if (count < PARTS)
		return prb_repr_bad(entry, "not a field");
	PRB_TRY(prb_dtype_read(r, parts[0], ret));
	PRB_TRY(prb_repr_int(r, parts[1], &at));
	if (at < 0 || !prb_inside((uint64_t)at, ret->size, dtype->size))
		return prb_repr_bad(entry, "a field outside of its item");
	*offset = (uint64_t)at;
	return NULL;
}

/* The type and the shape of an item that is an array. */
static struct prb_error *read_subarray(struct prb_repr *r, const struct prb_dtype *dtype,
				       struct prb_ndarray *ret)
{
	uint64_t words[2], sizes[PRB_NDARRAY_DIMENSIONS];
	int64_t length;

	PRB_TRY(prb_repr_words(r, dtype->subarray, 2, words));
	PRB_TRY(prb_dtype_read(r, words[0], &ret->dtype));
	PRB_TRY(prb_repr_tuple(r, words[1], sizes, PRB_NDARRAY_DIMENSIONS, &ret->dimensions));
	if (!ret->dimensions || ret->dimensions > PRB_NDARRAY_DIMENSIONS)
		return prb_repr_bad(dtype->subarray, "an item of impossible shape");

	uint64_t stride = ret->dtype.size;

	for (uint64_t i = ret->dimensions; i-- > 0;) {
		PRB_TRY(prb_repr_int(r, sizes[i], &length));
		if (length < 0)
			return prb_repr_bad(dtype->subarray, "an item of impossible shape");
		ret->shape[i] = (uint64_t)length;
		ret->strides[i] = stride;
		if (!prb_mul(stride, ret->shape[i], &stride) || stride > dtype->size)
			return prb_repr_bad(dtype->subarray, "an item of impossible shape");
	}
	return NULL;
}

static struct prb_error *put_bytes(struct prb_repr *r, uint64_t address, uint64_t size)
{
	uint8_t bytes[BYTES_MAX];
	uint64_t shown = PRB_MIN(size, (uint64_t)BYTES_MAX);

	shown = PRB_MIN(shown, (uint64_t)r->max.max_text);
	PRB_TRY(prb_mem_read(r->mem, address, bytes, shown));
	prb_str_puts(r->out, "b'");
	for (uint64_t i = 0; i < shown; i++)
		prb_str_put_escaped_byte(r->out, bytes[i]);
	prb_str_putc(r->out, '\'');
	if (shown < size)
		prb_str_printf(r->out, "…+%llu", (unsigned long long)(size - shown));
	return NULL;
}

static struct prb_error *put_item_fields(struct prb_repr *r, const struct prb_dtype *dtype,
					 uint64_t address)
{
	struct prb_items items = {.r = r};
	struct prb_dtype field;
	uint64_t name, offset;

	PRB_TRY(prb_repr_tuple(r, dtype->names, NULL, 0, &items.total));
	prb_str_putc(r->out, '(');
	while (prb_items_next(&items)) {
		PRB_TRY(prb_repr_word(
			r, dtype->names + (uint64_t)r->layout->tuple_items + (items.done - 1) * 8,
			&name));
		PRB_TRY(read_field(r, dtype, name, &offset, &field));
		PRB_TRY(prb_ndarray_put_item(r, &field, address + offset));
	}
	prb_str_puts(r->out, items.total == 1 ? ",)" : ")");
	return NULL;
}

struct prb_error *prb_numpy_put_void(struct prb_repr *r, const struct prb_dtype *dtype,
				     uint64_t address)
{
	struct prb_ndarray part;

	/* A type may be made to be part of itself. */
	if (!prb_repr_enter(r, address ^ dtype->fields ^ dtype->subarray, "…"))
		return NULL;
	if (dtype->fields) {
		PRB_TRY(put_item_fields(r, dtype, address));
	} else if (dtype->subarray) {
		PRB_TRY(read_subarray(r, dtype, &part));
		PRB_TRY(prb_ndarray_put_items(r, &part, 0, address));
	} else {
		PRB_TRY(put_bytes(r, address, dtype->size));
	}
	prb_repr_leave(r);
	return NULL;
}

static void put_shape(struct prb_repr *r, const struct prb_ndarray *array)
{
	prb_str_puts(r->out, ", (");
	for (uint64_t i = 0; i < array->dimensions; i++)
		prb_str_printf(r->out, "%s%llu", i ? ", " : "",
			       (unsigned long long)array->shape[i]);
	prb_str_puts(r->out, array->dimensions == 1 ? ",)" : ")");
}

/* As put in a list of fields: '<i4', or [('x', 'u1')], or '<i2', (2,). */
static struct prb_error *put_type(struct prb_repr *r, const struct prb_dtype *dtype)
{
	struct prb_ndarray part;

	if (dtype->subarray) {
		PRB_TRY(read_subarray(r, dtype, &part));
		if (part.dtype.subarray)
			return prb_repr_bad(dtype->subarray, "an array of arrays");
		PRB_TRY(put_type(r, &part.dtype));
		put_shape(r, &part);
		return NULL;
	}
	if (dtype->fields)
		return prb_numpy_put_fields(r, dtype);
	prb_str_putc(r->out, '\'');
	prb_dtype_put_code(r->out, dtype);
	prb_str_putc(r->out, '\'');
	return NULL;
}

/* Whether the fields follow each other without gaps; *ends is where the last one does. */
static struct prb_error *is_packed(struct prb_repr *r, const struct prb_dtype *dtype, bool *ret)
{
	uint64_t count, name, offset, end = 0;
	struct prb_dtype field;

	*ret = true;
	PRB_TRY(prb_repr_tuple(r, dtype->names, NULL, 0, &count));
	PRB_TRY(prb_repr_walk(r, count));
	for (uint64_t i = 0; i < count && *ret; i++) {
		PRB_TRY(prb_repr_word(r, dtype->names + (uint64_t)r->layout->tuple_items + i * 8,
				      &name));
		PRB_TRY(read_field(r, dtype, name, &offset, &field));
		*ret = offset == end;
		end = offset + field.size;
	}
	*ret &= end == dtype->size;
	return NULL;
}

/* One of the lists that describe fields with gaps between them. */
static struct prb_error *put_list(struct prb_repr *r, const struct prb_dtype *dtype, char what)
{
	struct prb_items items = {.r = r};
	struct prb_dtype field;
	uint64_t name, offset;

	PRB_TRY(prb_repr_tuple(r, dtype->names, NULL, 0, &items.total));
	prb_str_putc(r->out, '[');
	while (prb_items_next(&items)) {
		PRB_TRY(prb_repr_word(
			r, dtype->names + (uint64_t)r->layout->tuple_items + (items.done - 1) * 8,
			&name));
		PRB_TRY(read_field(r, dtype, name, &offset, &field));
		if (what == 'n' || what == 'p') {
			prb_str_puts(r->out, what == 'p' ? "(" : "");
			PRB_TRY(prb_repr_object(r, name));
		}
		prb_str_puts(r->out, what == 'p' ? ", " : "");
		if (what == 'f' || what == 'p') {
			bool array = what == 'f' && field.subarray;

			prb_str_puts(r->out, array ? "(" : "");
			PRB_TRY(put_type(r, &field));
			prb_str_puts(r->out, array || what == 'p' ? ")" : "");
		}
		if (what == 'o')
			prb_str_printf(r->out, "%llu", (unsigned long long)offset);
	}
	prb_str_putc(r->out, ']');
	return NULL;
}

struct prb_error *prb_numpy_put_fields(struct prb_repr *r, const struct prb_dtype *dtype)
{
	bool packed;

	if (!dtype->fields)
		return put_type(r, dtype);
	if (!prb_repr_enter(r, dtype->fields, "…"))
		return NULL;
	PRB_TRY(is_packed(r, dtype, &packed));
	if (packed) {
		PRB_TRY(put_list(r, dtype, 'p'));
	} else {
		prb_str_puts(r->out, "{'names': ");
		PRB_TRY(put_list(r, dtype, 'n'));
		prb_str_puts(r->out, ", 'formats': ");
		PRB_TRY(put_list(r, dtype, 'f'));
		prb_str_puts(r->out, ", 'offsets': ");
		PRB_TRY(put_list(r, dtype, 'o'));
		prb_str_printf(r->out, ", 'itemsize': %llu}", (unsigned long long)dtype->size);
	}
	prb_repr_leave(r);
	return NULL;
}

/* An array of booleans of the same shape says which items are missing; or it is one, for none. */
struct masked {
	struct prb_ndarray array, mask;
	bool has_mask;
};

static struct prb_error *put_masked_dimension(struct prb_repr *r, const struct masked *m,
					      unsigned dimension, uint64_t address, uint64_t mask)
{
	struct prb_items items = {.r = r};
	uint8_t missing;

	if (dimension == m->array.dimensions) {
		PRB_TRY(prb_mem_read_u8(r->mem, mask, &missing));
		if (!missing)
			return prb_ndarray_put_item(r, &m->array.dtype, address);
		prb_str_puts(r->out, "--");
		return NULL;
	}
	items.total = m->array.shape[dimension];
	prb_str_putc(r->out, '[');
	while (prb_items_next(&items)) {
		PRB_TRY(put_masked_dimension(r, m, dimension + 1, address, mask));
		address += m->array.strides[dimension];
		mask += m->mask.strides[dimension];
	}
	prb_str_putc(r->out, ']');
	return NULL;
}

static struct prb_error *read_mask(struct prb_repr *r, uint64_t mask, struct masked *m)
{
	m->has_mask = prb_repr_is(r, mask, "numpy.ndarray");
	if (!m->has_mask)
		return NULL;
	PRB_TRY(prb_ndarray_read(r, mask, &m->mask));
	if (m->mask.dimensions != m->array.dimensions ||
	    memcmp(m->mask.shape, m->array.shape, m->array.dimensions * sizeof(uint64_t)) != 0)
		return prb_repr_bad(mask, "a mask of another shape");
	return NULL;
}

static struct prb_error *put_masked(struct prb_repr *r, uint64_t object,
				    struct prb_type *type __attribute__((unused)))
{
	struct masked m = {};
	uint64_t mask, fill;

	PRB_TRY(prb_ndarray_read(r, object, &m.array));
	if (!prb_dtype_is_printable(&m.array.dtype))
		return prb_repr_bad(object, "items that are not known");
	PRB_TRY(prb_repr_attribute(r, object, "_mask", &mask));
	PRB_TRY(read_mask(r, mask, &m));
	prb_str_puts(r->out, "masked_array(data=");
	/* Of fields, each has a mask of its own. */
	if (m.has_mask && m.mask.dtype.number == 0)
		PRB_TRY(put_masked_dimension(r, &m, 0, m.array.data, m.mask.data));
	else
		PRB_TRY(prb_ndarray_put_items(r, &m.array, 0, m.array.data));
	prb_str_puts(r->out, ", mask=");
	if (m.has_mask && prb_dtype_is_printable(&m.mask.dtype))
		PRB_TRY(prb_ndarray_put_items(r, &m.mask, 0, m.mask.data));
	else
		prb_str_puts(r->out, "False");
	PRB_TRY(prb_repr_attribute(r, object, "_fill_value", &fill));
	if (prb_repr_is(r, fill, "numpy.ndarray")) {
		struct prb_ndarray value;

		PRB_TRY(prb_ndarray_read(r, fill, &value));
		if (!value.dimensions && prb_dtype_is_printable(&value.dtype)) {
			prb_str_puts(r->out, ", fill_value=");
			PRB_TRY(prb_ndarray_put_item(r, &value.dtype, value.data));
		}
	}
	prb_str_puts(r->out, ", dtype=");
	if (m.array.dtype.fields)
		PRB_TRY(prb_numpy_put_fields(r, &m.array.dtype));
	else
		prb_dtype_put_name(r->out, &m.array.dtype);
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_masked_array(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	if (strstr(type->name, "MaskedConstant")) {
		prb_str_puts(r->out, "masked");
		return NULL;
	}
	return prb_repr_put_or_default(r, object, type, put_masked);
}

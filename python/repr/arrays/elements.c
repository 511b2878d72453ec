/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/repr/arrays/elements.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/arrays/numpy.h"
#include "python/repr/arrays/pillow.h"
#include "python/repr/arrays/tensor_values.h"
#include "python/repr/core/handlers.h"

static struct prb_error *no_numbers(const char *what)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED, "%s", what),
			      "python.elements is for numbers in arrays of numpy, in tensors on "
			      "the CPU, and in images of Pillow");
}

static struct prb_error *count_elements(struct prb_elements *ret)
{
	ret->count = 1;
	for (uint64_t i = 0; i < ret->dimensions; i++)
		if (!prb_mul(ret->count, ret->shape[i], &ret->count) || ret->count > INT64_MAX)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"it has an impossible number of elements");
	return NULL;
}

static struct prb_error *open_ndarray(struct prb_repr *r, uint64_t object, struct prb_elements *ret)
{
	struct prb_ndarray array;

	PRB_TRY(prb_ndarray_read(r, object, &array));
	ret->dtype = prb_dtype_number(&array.dtype, &ret->code);
	if (!ret->dtype || !strchr("?bBhHiIqQefd", ret->code))
		return no_numbers("its elements are no real numbers");
	ret->swapped = array.dtype.order == '>';
	ret->size = (unsigned)array.dtype.size;
	ret->dimensions = array.dimensions;
	ret->first = array.data;
	for (uint64_t i = 0; i < array.dimensions; i++) {
		ret->shape[i] = array.shape[i];
		ret->strides[i] = array.strides[i];
	}
	return count_elements(ret);
}

struct prb_error *prb_repr_tensor_elements(const struct prb_tensor *tensor,
					   struct prb_elements *ret)
{
	ret->code = prb_tensor_values_code(tensor, &ret->first);
	if (!ret->code)
		return no_numbers("its elements are not in the memory of the CPU, or not as they "
				  "are seen");
	if (!strchr("?bBhHiIqQefdg", ret->code))
		return no_numbers("its elements are no real numbers");
	ret->dtype = tensor->dtype;
	ret->size = (unsigned)tensor->item_bytes;
	ret->dimensions = tensor->dimensions;
	for (uint64_t i = 0; i < tensor->dimensions; i++) {
		ret->shape[i] = tensor->shape[i];
		ret->strides[i] = tensor->strides[i] * tensor->item_bytes;
	}
	return count_elements(ret);
}

struct prb_error *prb_objects_elements(struct prb_objects *objects, uint64_t object,
				       struct prb_elements *ret)
{
	struct prb_repr *r;
	struct prb_type *type;

	*ret = (struct prb_elements){};
	PRB_TRY(prb_objects_begin(objects, object, &r, &type));
	if (type->handler == prb_repr_handle_ndarray)
		return open_ndarray(r, object, ret);
	if (type->handler == prb_repr_handle_tensor)
		return prb_repr_open_tensor(r, object, ret);
	if (type->handler == prb_repr_handle_image) {
		PRB_TRY(prb_repr_open_image(r, object, ret));
		return count_elements(ret);
	}
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "a %.100s is no array of numbers",
				type->name);
}

static struct prb_error *find_row(struct prb_elements *e, struct prb_mem *mem, uint64_t row)
{
	if (e->row_address && e->row == row)
		return NULL;
	e->row_address = 0;
	PRB_TRY(prb_mem_read_u64(mem, e->rows + row * sizeof(uint64_t), &e->row_address));
	e->row = row;
	return e->row_address ? NULL
			      : prb_error_create(PRB_ERROR_BAD_DATA,
						 "a row of the image has a null pointer");
}

static struct prb_error *find_address(struct prb_elements *e, struct prb_mem *mem, uint64_t index,
				      uint64_t *ret)
{
	*ret = e->first;
	for (uint64_t i = e->dimensions; i-- > (e->rows ? 1 : 0);) {
		*ret += index % e->shape[i] * e->strides[i];
		index /= e->shape[i];
	}
	if (!e->rows)
		return NULL;
	PRB_TRY(find_row(e, mem, index));
	*ret += e->row_address;
	return NULL;
}

/* A window begins at the element, for most arrays are read forwards; what lies behind the last
 * readable page is not needed. */
static struct prb_error *read_window(struct prb_elements *e, struct prb_mem *mem, uint64_t address)
{
	uint64_t size = PRB_ELEMENTS_WINDOW - address % PRB_ELEMENTS_WINDOW;

	e->held = 0;
	e->at = address;
	PRB_TRY(prb_mem_read(mem, address, e->window, PRB_MAX(size, (uint64_t)e->size)));
	e->held = PRB_MAX(size, (uint64_t)e->size);
	return NULL;
}

struct prb_error *prb_elements_read(struct prb_elements *e, struct prb_mem *mem, uint64_t index,
				    struct prb_object_number *ret)
{
	uint64_t address;
	uint8_t bytes[16] = {};

	PRB_TRY(find_address(e, mem, index, &address));
	if (address < e->at || e->held < e->size || address - e->at > e->held - e->size)
		PRB_TRY(read_window(e, mem, address));
	for (unsigned i = 0; i < e->size; i++)
		bytes[e->swapped ? e->size - 1 - i : i] = e->window[address - e->at + i];
	if (e->has_palette)
		bytes[0] = e->palette[4 * bytes[0] + index % e->shape[e->dimensions - 1]];
	*ret = (struct prb_object_number){};
	prb_tensor_values_number(e->code, e->size, bytes, ret);
	return NULL;
}

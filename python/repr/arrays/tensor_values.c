/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The elements of a tensor in the memory of the CPU: their text, their number, NaN and infinity. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/arrays/numpy.h"
#include "python/repr/arrays/tensor_values.h"
#include "python/repr/core/handlers.h"

enum {
	COUNTED = 4096, /* elements that are looked at for NaN and infinity */
	WINDOW = 4096,	/* bytes read at once */
	NUMBER = 16,	/* bytes of the widest number */
};

/* The codes of numpy.h, and 'g' for bfloat16. */
static const struct {
	const char *dtype;
	char code;
} codes[] = {
	{"uint8", 'B'},	    {"int8", 'b'},	 {"int16", 'h'},   {"int32", 'i'},
	{"int64", 'q'},	    {"float16", 'e'},	 {"float32", 'f'}, {"float64", 'd'},
	{"complex64", 'F'}, {"complex128", 'D'}, {"bool", '?'},	   {"bfloat16", 'g'},
	{"uint16", 'H'},    {"uint32", 'I'},	 {"uint64", 'Q'},
};

struct values {
	struct prb_repr *r;
	const struct prb_tensor *tensor;
	char code;
	uint64_t room;	     /* elements that may still be printed */
	uint64_t first, end; /* addresses: of the first element, behind the last byte of any */
	uint64_t at;	     /* of the window, whose bytes are these */
	uint64_t size;
	uint8_t window[WINDOW];
};

/* False if an element lies outside of the storage: then none is read. */
static bool find_bounds(struct values *v)
{
	const struct prb_tensor *t = v->tensor;
	uint64_t last = t->offset, part, bytes, first;

	for (uint64_t i = 0; i < t->dimensions; i++)
		if (!prb_mul(t->shape[i] - 1, t->strides[i], &part) || !prb_add(last, part, &last))
			return false;
	if (!prb_add(last, 1, &last) || !prb_mul(last, t->item_bytes, &bytes) ||
	    bytes > t->storage_bytes || !prb_mul(t->offset, t->item_bytes, &first))
		return false;
	return prb_add(t->data, first, &v->first) && prb_add(t->data, bytes, &v->end);
}

static bool begin(struct values *v, struct prb_repr *r, const struct prb_tensor *tensor)
{
	*v = (struct values){.r = r, .tensor = tensor, .room = r ? r->max.max_items : 0};
	for (size_t i = 0; i < PRB_ARRAY_SIZE(codes); i++)
		if (tensor->dtype && strcmp(codes[i].dtype, tensor->dtype) == 0)
			v->code = codes[i].code;
	if (!v->code || !tensor->plain || !tensor->device || strcmp(tensor->device, "cpu") != 0)
		return false;
	return !tensor->elements || (tensor->data && find_bounds(v));
}

/* The bytes of the element at @p address, which lies within the bounds. */
static struct prb_error *read_element(struct values *v, uint64_t address, uint8_t ret[NUMBER])
{
	uint64_t bytes = v->tensor->item_bytes;

	if (address < v->at || address + bytes > v->at + v->size) {
		v->size = 0;
		v->at = address;

		uint64_t size = PRB_MIN(v->end - address, (uint64_t)WINDOW);

		PRB_TRY(prb_mem_read(v->r->mem, address, v->window, size));
		v->size = size;
	}
	memset(ret, 0, NUMBER);
	memcpy(ret, v->window + (address - v->at), bytes);
	return NULL;
}

static float from_bfloat16(const uint8_t *bytes, unsigned further)
{
	uint16_t half;
	uint32_t bits;
	float value;

	memcpy(&half, bytes, sizeof(half));
	bits = ((uint32_t)half + further) << 16;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void put_element(struct values *v, const uint8_t *bytes)
{
	if (v->code != 'g') {
		prb_numpy_put_number(v->r, v->code, bytes);
		return;
	}

	float value = from_bfloat16(bytes, 0);
	float step = isfinite(value) ? fabsf(from_bfloat16(bytes, 1)) - fabsf(value) : 0;

	prb_repr_put_shortest(v->r, (double)value, isfinite(step) ? (double)step : 0, true);
}

/* Elements after the first max_items ones, and the rows around them, are left out. */
static struct prb_error *put_dimension(struct values *v, uint64_t dimension, uint64_t address)
{
	const struct prb_tensor *t = v->tensor;
	uint8_t bytes[NUMBER];

	if (dimension == t->dimensions) {
		PRB_TRY(read_element(v, address, bytes));
		put_element(v, bytes);
		v->room -= !!v->room;
		return NULL;
	}
	prb_str_putc(v->r->out, '[');
	for (uint64_t i = 0; i < t->shape[dimension]; i++) {
		if (i)
			prb_str_puts(v->r->out, ", ");
		if (!v->room || !prb_repr_room(v->r)) {
			prb_str_printf(v->r->out, "…+%llu",
				       (unsigned long long)(t->shape[dimension] - i));
			break;
		}
		PRB_TRY(put_dimension(v, dimension + 1,
				      address + i * t->strides[dimension] * t->item_bytes));
	}
	prb_str_putc(v->r->out, ']');
	return NULL;
}

/* The real and the imaginary part; *parts is 0 for what is always finite. */
static void read_parts(char code, const uint8_t *bytes, double ret[2], unsigned *parts)
{
	float pair[2];
	uint16_t half;
	double step;

	*parts = code == 'F' || code == 'D' ? 2 : 1;
	memcpy(ret, bytes, 2 * sizeof(*ret));
	memcpy(pair, bytes, sizeof(pair));
	memcpy(&half, bytes, sizeof(half));
	switch (code) {
	case 'D':
	case 'd':
		return;
	case 'F':
	case 'f':
		ret[0] = (double)pair[0];
		ret[1] = (double)pair[1];
		return;
	case 'e':
		ret[0] = prb_numpy_half(half, &step);
		return;
	case 'g':
		ret[0] = (double)from_bfloat16(bytes, 0);
		return;
	default:
		*parts = 0;
	}
}

struct counts {
	uint64_t elements, nan, infinite;
};

static void count_element(char code, const uint8_t *bytes, struct counts *ret)
{
	bool nan = false, infinite = false;
	double values[2];
	unsigned parts;

	read_parts(code, bytes, values, &parts);
	for (unsigned i = 0; i < parts; i++) {
		nan |= isnan(values[i]);
		infinite |= isinf(values[i]);
	}
	ret->elements++;
	ret->nan += nan;
	ret->infinite += infinite && !nan;
}

/* The first elements in the order of their indexes. */
static struct prb_error *count(struct values *v, struct counts *ret)
{
	const struct prb_tensor *t = v->tensor;
	uint64_t index[PRB_TENSOR_DIMENSIONS] = {}, address = v->first;
	uint8_t bytes[NUMBER];

	while (ret->elements < PRB_MIN(t->elements, (uint64_t)COUNTED)) {
		PRB_TRY(read_element(v, address, bytes));
		count_element(v->code, bytes, ret);
		for (uint64_t i = t->dimensions; i-- > 0;) {
			uint64_t stride = t->strides[i] * t->item_bytes;

			address += stride;
			if (++index[i] < t->shape[i])
				break;
			address -= stride * index[i];
			index[i] = 0;
		}
	}
	return NULL;
}

static void put_count(const struct values *v, const struct counts *counts, const char *name,
		      uint64_t found)
{
	if (!found)
		return;
	prb_str_printf(v->r->out, ", %s=%llu", name, (unsigned long long)found);
	if (counts->elements < v->tensor->elements)
		prb_str_printf(v->r->out, " of the first %llu",
			       (unsigned long long)counts->elements);
}

/* Memory that was freed since, or that a view does not have, has no elements to show. */
static struct prb_error *take_back(struct prb_repr *r, size_t start, struct prb_error *err,
				   bool *shown)
{
	if (!prb_error_catch(&err, PRB_ERROR_FAULT))
		return err;
	prb_str_truncate(r->out, start);
	*shown = false;
	return NULL;
}

struct prb_error *prb_tensor_put_values(struct prb_repr *r, const struct prb_tensor *tensor,
					bool *shown)
{
	size_t start = r->out->length;
	struct values v;

	*shown = begin(&v, r, tensor);
	if (!*shown)
		return NULL;
	if (!tensor->elements) {
		prb_str_puts(r->out, "[]");
		return NULL;
	}
	return take_back(r, start, put_dimension(&v, 0, v.first), shown);
}

struct prb_error *prb_tensor_put_counts(struct prb_repr *r, const struct prb_tensor *tensor)
{
	size_t start = r->out->length;
	struct counts counts = {};
	uint8_t none[NUMBER] = {};
	unsigned parts;
	double unused[2];
	struct values v;
	bool shown;

	if (tensor->elements < 2 || !begin(&v, r, tensor))
		return NULL;
	read_parts(v.code, none, unused, &parts);
	if (!parts)
		return NULL;
	PRB_TRY(take_back(r, start, count(&v, &counts), &shown));
	put_count(&v, &counts, "nan", counts.nan);
	put_count(&v, &counts, "inf", counts.infinite);
	return NULL;
}

void prb_tensor_values_number(char code, unsigned size, const uint8_t *bytes,
			      struct prb_object_number *ret)
{
	double values[2];
	unsigned parts, unused = 64 - 8 * size;
	uint64_t bits;

	read_parts(code, bytes, values, &parts);
	if (parts == 1) {
		ret->kind = PRB_NUMBER_REAL;
		ret->real = values[0];
	}
	memcpy(&bits, bytes, sizeof(bits));
	if (parts || (code == 'Q' && bits > INT64_MAX))
		return;
	ret->kind = PRB_NUMBER_INTEGER;
	ret->integer = (int64_t)bits;
	if (strchr("bhiq", code))
		ret->integer = (int64_t)(bits << unused) >> unused;
}

char prb_tensor_values_code(const struct prb_tensor *tensor, uint64_t *first)
{
	struct values v;

	if (!begin(&v, NULL, tensor))
		return 0;
	*first = v.first;
	return v.code;
}

struct prb_error *prb_tensor_number(struct prb_repr *r, const struct prb_tensor *tensor,
				    struct prb_object_number *ret)
{
	uint8_t bytes[NUMBER];
	struct values v;

	if (tensor->elements != 1 || !begin(&v, r, tensor))
		return NULL;
	PRB_TRY(read_element(&v, v.first, bytes));
	prb_tensor_values_number(v.code, (unsigned)tensor->item_bytes, bytes, ret);
	return NULL;
}

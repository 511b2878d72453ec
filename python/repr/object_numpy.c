/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * numpy arrays and scalars. An array prints as array([[1.0, 2.0], …], shape=(2, 2), dtype=float64):
 * always with shape and dtype, and numbers as Python has them, not padded to columns. Scalars
 * print as numpy prints them.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/object_handlers.h"

enum { DIMENSIONS_MAX = 64, TEXT_MAX = 4096 };

/* Type numbers of numpy's C interface. */
enum {
	TYPE_LONG = 7,
	TYPE_LONGLONG = 9,
	TYPE_ULONGLONG = 10,
	TYPE_CDOUBLE = 15,
	TYPE_OBJECT = 17,
	TYPE_STRING = 18,
	TYPE_UNICODE = 19,
	TYPE_VOID = 20,
	TYPE_DATETIME = 21,
	TYPE_HALF = 23,
	TYPE_COUNT = 24,
};

/* By type number: the name, the struct code of a number and its size. */
static const struct {
	const char *name;
	char code, size;
} types[TYPE_COUNT] = {
	{"bool", '?', 1},	 {"int8", 'b', 1},	 {"uint8", 'B', 1},
	{"int16", 'h', 2},	 {"uint16", 'H', 2},	 {"int32", 'i', 4},
	{"uint32", 'I', 4},	 {"int64", 'l', 8},	 {"uint64", 'L', 8},
	{"longlong", 'q', 8},	 {"ulonglong", 'Q', 8},	 {"float32", 'f', 4},
	{"float64", 'd', 8},	 {"longdouble", 0, 16},	 {"complex64", 'F', 8},
	{"complex128", 'D', 16}, {"clongdouble", 0, 32}, {"object", 'O', 8},
	{"bytes_", 'S', 0},	 {"str_", 'U', 0},	 {"void", 0, 0},
	{"datetime64", 0, 8},	 {"timedelta64", 0, 8},	 {"float16", 'e', 2},
};

/* What an array's memory is made of. */
struct dtype {
	unsigned number;
	uint64_t size; /* bytes of an item */
	char order;    /* '>' for numbers in the other byte order */
	char kind;     /* letter that dtype strings begin with */
};

struct array {
	struct dtype dtype;
	uint64_t data;
	uint64_t dimensions;
	uint64_t shape[DIMENSIONS_MAX], strides[DIMENSIONS_MAX];
};

/*
 * A descriptor: scalar type, kind, type, byteorder, flags (1 byte each), type number (int); then
 * in numpy 1 the item's size (int), in numpy 2 flags and the size as words.
 */
static struct prb_error *read_dtype(struct prb_repr *r, uint64_t object, struct dtype *ret)
{
	enum { NUMPY2_SIZE = 112 }; /* sizeof of a descriptor, beyond that of numpy 1 */
	struct prb_type *type;
	uint64_t words[4];

	PRB_TRY(prb_repr_type_of(r, object, &type));
	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 4, words));
	ret->kind = (char)words[1];
	ret->order = (char)(words[1] >> 16);
	ret->number = (unsigned)(words[1] >> 32);
	ret->size = type->basicsize >= NUMPY2_SIZE ? words[3] : words[2] & UINT32_MAX;
	if (ret->number < TYPE_COUNT && types[ret->number].size)
		ret->size = (uint64_t)types[ret->number].size;
	if (ret->size > INT32_MAX || ret->kind < ' ' || ret->kind > '~')
		return prb_repr_bad(object, "not a dtype");
	return NULL;
}

static struct prb_error *read_array(struct prb_repr *r, uint64_t object, struct array *ret)
{
	uint64_t words[6]; /* data, dimensions (int), shape, strides, base, dtype */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 6, words));
	ret->data = words[0];
	ret->dimensions = words[1] & UINT32_MAX;
	if (ret->dimensions > DIMENSIONS_MAX)
		return prb_repr_bad(object, "an array of too many dimensions");
	PRB_TRY(prb_repr_words(r, words[2], ret->dimensions, ret->shape));
	PRB_TRY(prb_repr_words(r, words[3], ret->dimensions, ret->strides));
	return read_dtype(r, words[5], &ret->dtype);
}

struct prb_error *prb_repr_ndarray_memory(struct prb_repr *r, uint64_t object,
					  struct prb_ndarray_memory *ret)
{
	enum { OWNS_DATA = 4 };
	struct array array;
	uint64_t flags;

	PRB_TRY(read_array(r, object, &array));
	PRB_TRY(prb_repr_member(r, object, 6, &flags));
	ret->bytes = array.dtype.size;
	for (uint64_t i = 0; i < array.dimensions; i++)
		if (!prb_mul(ret->bytes, array.shape[i], &ret->bytes))
			return prb_repr_bad(object, "an array of impossible size");
	ret->data = array.data;
	ret->owned = flags & OWNS_DATA;
	ret->objects = array.dtype.number == TYPE_OBJECT;
	return NULL;
}

static double half_to_double(uint16_t half, double *step)
{
	int exponent = half >> 10 & 31;
	double fraction = half & 0x3ff;
	double value = exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
		       : exponent     ? ldexp(fraction + 1024, exponent - 25)
				      : ldexp(fraction, -24);

	*step = ldexp(1, exponent ? exponent - 25 : -24);
	return half & 0x8000 ? -value : value;
}

static void put_half(struct prb_repr *r, const uint8_t *bytes)
{
	uint16_t half;
	double step;

	memcpy(&half, bytes, sizeof(half));

	double value = half_to_double(half, &step);

	prb_repr_put_shortest(r, value, step, true);
}

static void put_float(struct prb_repr *r, const uint8_t *bytes, bool point)
{
	float value;

	memcpy(&value, bytes, sizeof(value));

	double step = isfinite(value)
			      ? (double)nextafterf(fabsf(value), INFINITY) - (double)fabsf(value)
			      : 0;

	prb_repr_put_shortest(r, (double)value, step, point);
}

static void put_complex(struct prb_repr *r, unsigned number, const uint8_t *bytes)
{
	float pair[2];
	double value[2];

	if (number == TYPE_CDOUBLE) {
		memcpy(value, bytes, sizeof(value));
		prb_repr_put_complex(r, value[0], value[1]);
		return;
	}
	memcpy(pair, bytes, sizeof(pair));
	if (pair[0] == 0 && !signbit(pair[0])) {
		put_float(r, bytes + sizeof(float), false);
		prb_str_putc(r->out, 'j');
		return;
	}
	prb_str_putc(r->out, '(');
	put_float(r, bytes, false);
	if (isnan(pair[1]) || !signbit(pair[1]))
		prb_str_putc(r->out, '+');
	put_float(r, bytes + sizeof(float), false);
	prb_str_puts(r->out, "j)");
}

/* A number of at most 16 bytes in our byte order; false if we do not know how it looks. */
static bool put_number(struct prb_repr *r, unsigned number, const uint8_t *bytes)
{
	switch (types[number].code) {
	case '?':
		prb_str_puts(r->out, *bytes ? "True" : "False");
		return true;
	case 'e':
		put_half(r, bytes);
		return true;
	case 'f':
		put_float(r, bytes, true);
		return true;
	case 'F':
	case 'D':
		put_complex(r, number, bytes);
		return true;
	default:
		return types[number].code && prb_repr_put_number(r, types[number].code, bytes);
	}
}

/* Fixed-width text, without the zeros that fill it up. */
static struct prb_error *put_fixed_text(struct prb_repr *r, const struct dtype *dtype,
					uint64_t address)
{
	unsigned width = dtype->number == TYPE_UNICODE ? 4 : 1;
	size_t count = PRB_MIN(dtype->size / width, (uint64_t)TEXT_MAX);
	prb_auto_free uint8_t *bytes = calloc(count + 1, 4);
	uint32_t *wide = (uint32_t *)bytes;

	if (!bytes)
		return prb_error_nomem();
	if (count)
		PRB_TRY(prb_mem_read(r->mem, address, bytes, count * width));
	if (width == 1)
		for (size_t i = count; i-- > 0;)
			wide[i] = bytes[i];
	while (count && !wide[count - 1])
		count--;
	count = PRB_MIN(count, (size_t)r->max.max_text);
	if (width == 1)
		prb_repr_quote_bytes(r, wide, count);
	else
		prb_repr_quote(r, wide, count);
	return NULL;
}

static struct prb_error *put_item(struct prb_repr *r, const struct dtype *dtype, uint64_t address)
{
	uint8_t bytes[32] = {};
	uint64_t object;

	switch (dtype->number) {
	case TYPE_OBJECT:
		PRB_TRY(prb_repr_word(r, address, &object));
		return prb_repr_object(r, object);
	case TYPE_STRING:
	case TYPE_UNICODE:
		return put_fixed_text(r, dtype, address);
	default:
		PRB_TRY(prb_mem_read(r->mem, address, bytes, dtype->size));
		put_number(r, dtype->number, bytes);
		return NULL;
	}
}

static struct prb_error *put_dimension(struct prb_repr *r, const struct array *array,
				       unsigned dimension, uint64_t address)
{
	struct prb_items items = {.r = r};

	if (dimension == array->dimensions)
		return put_item(r, &array->dtype, address);
	items.total = array->shape[dimension];
	prb_str_putc(r->out, '[');
	while (prb_items_next(&items)) {
		PRB_TRY(put_dimension(r, array, dimension + 1, address));
		address += array->strides[dimension];
	}
	prb_str_putc(r->out, ']');
	return NULL;
}

static void put_dtype(struct prb_repr *r, const struct dtype *dtype)
{
	prb_str_puts(r->out, "dtype=");
	if (dtype->order == '>' || dtype->number == TYPE_UNICODE || dtype->number == TYPE_STRING ||
	    dtype->number == TYPE_VOID || dtype->number >= TYPE_COUNT)
		prb_str_printf(r->out, "'%s%c%llu'",
			       dtype->order == '>'	       ? ">"
			       : dtype->number == TYPE_UNICODE ? "<"
							       : "",
			       dtype->kind,
			       (unsigned long long)dtype->size /
				       (dtype->number == TYPE_UNICODE ? 4 : 1));
	else
		prb_str_puts(r->out, types[dtype->number].name);
}

static bool is_printable(const struct dtype *dtype)
{
	return dtype->number < TYPE_COUNT && types[dtype->number].code && dtype->order != '>';
}

static void put_shape(struct prb_repr *r, const struct array *array)
{
	prb_str_putc(r->out, '(');
	for (unsigned i = 0; i < array->dimensions; i++)
		prb_str_printf(r->out, "%s%lld", i ? ", " : "", (long long)array->shape[i]);
	prb_str_puts(r->out, array->dimensions == 1 ? ",)" : ")");
}

struct prb_error *prb_repr_ndarray_part(struct prb_repr *r, uint64_t object, const char *name,
					const char **type)
{
	struct array array;
	uint64_t count = 1;

	PRB_TRY(read_array(r, object, &array));
	for (unsigned i = 0; i < array.dimensions; i++)
		count *= array.shape[i];
	*type = "int";
	if (!strcmp(name, "shape")) {
		*type = "tuple";
		put_shape(r, &array);
		return NULL;
	}
	if (!strcmp(name, "ndim") || !strcmp(name, "size")) {
		prb_str_printf(r->out, "%llu",
			       (unsigned long long)(*name == 'n' ? array.dimensions : count));
		return NULL;
	}
	if (strcmp(name, "dtype") != 0 || !is_printable(&array.dtype) ||
	    array.dtype.number == TYPE_OBJECT)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "not known");
	*type = "dtype";
	prb_str_printf(r->out, "dtype('%s')", types[array.dtype.number].name);
	return NULL;
}

struct prb_error *prb_repr_handle_ndarray(struct prb_repr *r, uint64_t object,
					  struct prb_type *type)
{
	struct array array;

	PRB_TRY(read_array(r, object, &array));
	if (!prb_repr_enter(r, object, "array(...)"))
		return NULL;
	if (prb_type_is(type, "numpy.ndarray"))
		prb_str_puts(r->out, "array");
	else
		PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	if (is_printable(&array.dtype)) {
		PRB_TRY(put_dimension(r, &array, 0, array.data));
		prb_str_puts(r->out, ", ");
	}
	prb_str_puts(r->out, "shape=");
	put_shape(r, &array);
	prb_str_puts(r->out, ", ");
	put_dtype(r, &array.dtype);
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

/* numpy 2 puts the type's name around its scalars, and has more in numpy.generic. */
static struct prb_error *is_numpy2(struct prb_repr *r, const struct prb_type *type, bool *ret)
{
	uint64_t value;
	struct prb_error *err = prb_repr_lookup(r, type, "__array_namespace__", &value, NULL);

	*ret = !err;
	prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
	return err;
}

static struct prb_error *put_scalar(struct prb_repr *r, uint64_t object, struct prb_type *type,
				    unsigned number, bool named)
{
	uint8_t bytes[32] = {};

	switch (number) {
	case TYPE_STRING:
		return prb_repr_handle_bytes(r, object, type);
	case TYPE_UNICODE:
		return prb_repr_handle_str(r, object, type);
	default:
		PRB_TRY(prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size, bytes,
				     (size_t)types[number].size));
	}

	size_t start = r->out->length;

	put_number(r, number, bytes);
	/* numpy 2 has its own parentheses around complex numbers. */
	if (named && !r->out->failed && r->out->data[start] == '(') {
		memmove(r->out->data + start, r->out->data + start + 1, r->out->length - start - 1);
		prb_str_truncate(r->out, r->out->length - 2);
	}
	return NULL;
}

struct prb_error *prb_repr_handle_numpy_scalar(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	const char *name = type->name + strlen("numpy.");
	unsigned number = 0;
	bool named;

	while (number < TYPE_COUNT && strcmp(types[number].name, name) != 0)
		number++;
	/* "numpy.bool_" in numpy 1, "numpy.bool" since then. */
	if (strcmp(name, "bool_") == 0)
		number = 0;
	if (strncmp(type->name, "numpy.", 6) != 0 || number == TYPE_COUNT || !types[number].code)
		return prb_repr_handle_default(r, object, type);
	PRB_TRY(is_numpy2(r, type, &named));
	if (!named)
		return put_scalar(r, object, type, number, named);
	prb_str_puts(r->out, "np.");
	if (number == 0) {
		PRB_TRY(put_scalar(r, object, type, number, named));
		prb_str_putc(r->out, '_');
		return NULL;
	}
	/* "long long" is a type of its own, but named like the "long" of the same size. */
	if (number == TYPE_LONGLONG || number == TYPE_ULONGLONG)
		name = types[number - TYPE_LONGLONG + TYPE_LONG].name;
	prb_str_printf(r->out, "%s(", name);
	PRB_TRY(put_scalar(r, object, type, number, named));
	prb_str_putc(r->out, ')');
	return NULL;
}

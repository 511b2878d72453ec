/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * numpy arrays and scalars. An array prints as array([[1.0, 2.0], …], shape=(2, 2), dtype=float64):
 * always with shape and dtype, and numbers as Python has them, not padded to columns. Scalars
 * print as numpy prints them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"
#include "python/repr/arrays/numpy.h"

enum { TEXT_MAX = 4096 };

/* Type numbers of numpy's C interface. */
enum {
	TYPE_LONG = 7,
	TYPE_LONGLONG = 9,
	TYPE_ULONGLONG = 10,
	TYPE_LONGDOUBLE = 13,
	TYPE_CLONGDOUBLE = 16,
	TYPE_OBJECT = 17,
	TYPE_STRING = 18,
	TYPE_UNICODE = 19,
	TYPE_VOID = 20,
	TYPE_DATETIME = 21,
	TYPE_TIMEDELTA = 22,
	TYPE_HALF = 23,
	TYPE_COUNT = 24,
};

/* By type number: the name, the struct code of a number and its size. */
static const struct {
	const char *name;
	char code, size;
} types[TYPE_COUNT] = {
	{"bool", '?', 1},	 {"int8", 'b', 1},	   {"uint8", 'B', 1},
	{"int16", 'h', 2},	 {"uint16", 'H', 2},	   {"int32", 'i', 4},
	{"uint32", 'I', 4},	 {"int64", 'l', 8},	   {"uint64", 'L', 8},
	{"longlong", 'q', 8},	 {"ulonglong", 'Q', 8},	   {"float32", 'f', 4},
	{"float64", 'd', 8},	 {"longdouble", 'g', 16},  {"complex64", 'F', 8},
	{"complex128", 'D', 16}, {"clongdouble", 'G', 32}, {"object", 'O', 8},
	{"bytes_", 'S', 0},	 {"str_", 'U', 0},	   {"void", 0, 0},
	{"datetime64", 0, 8},	 {"timedelta64", 0, 8},	   {"float16", 'e', 2},
};

enum { NUMPY2_SIZE = 112 }; /* sizeof of a descriptor, larger than in numpy 1 */

const char *prb_dtype_number(const struct prb_dtype *dtype, char *code)
{
	if (dtype->number >= TYPE_COUNT || !types[dtype->number].code ||
	    dtype->number == TYPE_OBJECT)
		return NULL;
	*code = types[dtype->number].code;
	if (*code == 'l' || *code == 'L')
		*code = *code == 'l' ? 'q' : 'Q';
	return types[dtype->number].name;
}

static bool is_time(unsigned number)
{
	return number == TYPE_DATETIME || number == TYPE_TIMEDELTA;
}

/* Behind the functions of NpyAuxData. */
static struct prb_error *read_unit(struct prb_repr *r, uint64_t metadata,
				   struct prb_numpy_unit *ret)
{
	enum { AUXILIARY = 32 };

	return prb_mem_read(r->mem, metadata + AUXILIARY, ret, sizeof(*ret));
}

/*
 * A descriptor: scalar type, kind, type, byteorder, flags (1 byte each), type number (int); then
 * in numpy 1 the item's size (int), in numpy 2 flags and the size as words. A word further on leads
 * to the unit of dates and times.
 */
struct prb_error *prb_dtype_read(struct prb_repr *r, uint64_t object, struct prb_dtype *ret)
{
	enum { UNIT_WORD = 8, NUMPY2_UNIT_WORD = 12, VOID_WORD = 3, NUMPY2_VOID_WORD = 9 };
	struct prb_type *type;
	uint64_t words[4], parts[3], metadata;
	bool numpy2;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 4, words));
	ret->kind = (char)words[1];
	ret->order = (char)(words[1] >> 16);
	ret->number = (unsigned)(words[1] >> 32);
	numpy2 = type->basicsize >= NUMPY2_SIZE;
	ret->size = numpy2 ? words[3] : words[2] & UINT32_MAX;
	ret->unit = (struct prb_numpy_unit){-1, 1};
	if (ret->number < TYPE_COUNT && types[ret->number].size)
		ret->size = (uint64_t)types[ret->number].size;
	if (ret->size > INT32_MAX || ret->kind < ' ' || ret->kind > '~')
		return prb_repr_bad(object, "not a dtype");
	ret->subarray = ret->fields = ret->names = 0;
	if (ret->number == TYPE_VOID) {
		PRB_TRY(prb_repr_words(r,
				       object + (uint64_t)r->layout->object_size +
					       (numpy2 ? NUMPY2_VOID_WORD : VOID_WORD) * 8,
				       3, parts));
		ret->subarray = parts[0];
		if (parts[1] && prb_repr_is(r, parts[2], "tuple")) {
			ret->fields = parts[1];
			ret->names = parts[2];
		}
	}
	if (!is_time(ret->number))
		return NULL;
	PRB_TRY(prb_repr_member(r, object, numpy2 ? NUMPY2_UNIT_WORD : UNIT_WORD, &metadata));
	return read_unit(r, metadata, &ret->unit);
}

struct prb_error *prb_ndarray_read(struct prb_repr *r, uint64_t object, struct prb_ndarray *ret)
{
	uint64_t words[6]; /* data, dimensions (int), shape, strides, base, dtype */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 6, words));
	ret->data = words[0];
	ret->dimensions = words[1] & UINT32_MAX;
	if (ret->dimensions > PRB_NDARRAY_DIMENSIONS)
		return prb_repr_bad(object, "an array of too many dimensions");
	PRB_TRY(prb_repr_words(r, words[2], ret->dimensions, ret->shape));
	PRB_TRY(prb_repr_words(r, words[3], ret->dimensions, ret->strides));
	return prb_dtype_read(r, words[5], &ret->dtype);
}

struct prb_error *prb_repr_ndarray_memory(struct prb_repr *r, uint64_t object,
					  struct prb_ndarray_memory *ret)
{
	enum { OWNS_DATA = 4 };
	struct prb_ndarray array;
	uint64_t flags;

	PRB_TRY(prb_ndarray_read(r, object, &array));
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

double prb_numpy_half(uint16_t half, double *step)
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

	double value = prb_numpy_half(half, &step);

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

static void put_complex(struct prb_repr *r, char code, const uint8_t *bytes)
{
	float pair[2];
	double value[2];

	if (code == 'D') {
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

/* The shortest digits that read back as the same number, as of a double. */
void prb_numpy_put_longdouble(struct prb_repr *r, const uint8_t *bytes, bool point)
{
	enum { DIGITS_MAX = 36, PRECISE = 17 };
	char text[64], *exponent, *digits = text;
	long double value;
	int precision = 0, scale, count;

	memcpy(&value, bytes, sizeof(value));
	if (isnan(value) || isinf(value) || value == 0) {
		prb_repr_put_shortest(r, (double)value, 0, point);
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*Le", precision, value);
	while (strtold(text, NULL) != value && ++precision < DIGITS_MAX);
	if (*digits == '-') {
		prb_str_putc(r->out, '-');
		digits++;
	}
	exponent = strchr(text, 'e');
	scale = exponent ? atoi(exponent + 1) : 0;
	if (!exponent || scale < -4 || scale >= 16) {
		prb_str_puts(r->out, digits);
		return;
	}
	/* One digit, a point, the others: the point moves. */
	*exponent = '\0';
	if (digits[1])
		memmove(digits + 1, digits + 2, strlen(digits + 2) + 1);
	count = (int)strlen(digits);
	if (scale < 0)
		prb_str_printf(r->out, "0.%.*s%s", -scale - 1, "000", digits);
	else if (count > scale + 1)
		prb_str_printf(r->out, "%.*s.%s", scale + 1, digits, digits + scale + 1);
	else
		prb_str_printf(r->out, "%s%.*s%s", digits, scale + 1 - count, "0000000000000000",
			       point ? ".0" : "");
}

static void put_long_complex(struct prb_repr *r, const uint8_t *bytes)
{
	long double pair[2];

	memcpy(pair, bytes, sizeof(pair));
	if (pair[0] != 0 || signbit(pair[0])) {
		prb_numpy_put_longdouble(r, bytes, false);
		if (isnan(pair[1]) || !signbit(pair[1]))
			prb_str_putc(r->out, '+');
	}
	prb_numpy_put_longdouble(r, bytes + sizeof(long double), false);
	prb_str_putc(r->out, 'j');
}

bool prb_numpy_put_number(struct prb_repr *r, char code, const uint8_t *bytes)
{
	switch (code) {
	case 'g':
		prb_numpy_put_longdouble(r, bytes, true);
		return true;
	case 'G':
		put_long_complex(r, bytes);
		return true;
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
		put_complex(r, code, bytes);
		return true;
	default:
		return code && prb_repr_put_number(r, code, bytes);
	}
}

/* Fixed-width text, without the zeros that fill it up. */
static struct prb_error *put_fixed_text(struct prb_repr *r, const struct prb_dtype *dtype,
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

static void reverse(uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size / 2; i++) {
		uint8_t byte = bytes[i];

		bytes[i] = bytes[size - 1 - i];
		bytes[size - 1 - i] = byte;
	}
}

/* Of a number: in our byte order. */
static struct prb_error *read_item(struct prb_repr *r, const struct prb_dtype *dtype,
				   uint64_t address, uint8_t bytes[static 32])
{
	bool pair = dtype->kind == 'c';
	size_t size = dtype->size / (pair ? 2 : 1);

	if (dtype->size > 32)
		return prb_repr_bad(address, "not a number");
	PRB_TRY(prb_mem_read(r->mem, address, bytes, dtype->size));
	if (dtype->order != '>')
		return NULL;
	reverse(bytes, size);
	if (pair)
		reverse(bytes + size, size);
	return NULL;
}

static void put_time(struct prb_repr *r, const struct prb_dtype *dtype, const uint8_t *bytes)
{
	int64_t value;

	memcpy(&value, bytes, sizeof(value));
	if (dtype->number == TYPE_TIMEDELTA && value != INT64_MIN) {
		prb_str_printf(r->out, "%lld", (long long)value);
		return;
	}
	prb_str_putc(r->out, '\'');
	if (!prb_numpy_put_moment(r->out, value, dtype->unit))
		prb_str_printf(r->out, "%lld", (long long)value);
	prb_str_putc(r->out, '\'');
}

struct prb_error *prb_ndarray_int(struct prb_repr *r, const struct prb_dtype *dtype,
				  uint64_t address, int64_t *ret)
{
	unsigned shift = 64 - 8 * (unsigned)dtype->size;
	uint8_t bytes[32] = {};

	if (dtype->kind != 'i' || !dtype->size || dtype->size > sizeof(*ret))
		return prb_repr_bad(address, "not an integer");
	PRB_TRY(read_item(r, dtype, address, bytes));
	memcpy(ret, bytes, sizeof(*ret));
	*ret = (int64_t)((uint64_t)*ret << shift) >> shift;
	return NULL;
}

struct prb_error *prb_ndarray_put_item(struct prb_repr *r, const struct prb_dtype *dtype,
				       uint64_t address)
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
	case TYPE_VOID:
		return prb_numpy_put_void(r, dtype, address);
	default:
		PRB_TRY(read_item(r, dtype, address, bytes));
		if (is_time(dtype->number))
			put_time(r, dtype, bytes);
		else
			prb_numpy_put_number(r, types[dtype->number].code, bytes);
		return NULL;
	}
}

struct prb_error *prb_ndarray_put_items(struct prb_repr *r, const struct prb_ndarray *array,
					unsigned dimension, uint64_t address)
{
	struct prb_items items = {.r = r};

	if (dimension == array->dimensions)
		return prb_ndarray_put_item(r, &array->dtype, address);
	items.total = array->shape[dimension];
	prb_str_putc(r->out, '[');
	while (prb_items_next(&items)) {
		PRB_TRY(prb_ndarray_put_items(r, array, dimension + 1, address));
		address += array->strides[dimension];
	}
	prb_str_putc(r->out, ']');
	return NULL;
}

/* A name that needs no quotes. */
static bool is_named(const struct prb_dtype *dtype)
{
	return dtype->order != '>' && dtype->number < TYPE_COUNT && !is_time(dtype->number) &&
	       dtype->number != TYPE_UNICODE && dtype->number != TYPE_STRING &&
	       dtype->number != TYPE_VOID;
}

/* As <M8[ns], >f8, <U5. */
static void put_code_and_unit(struct prb_str *out, const char *order, const struct prb_dtype *dtype)
{
	uint64_t width = dtype->number == TYPE_UNICODE ? 4 : 1;

	prb_str_printf(out, "%s%c%llu", order, dtype->kind,
		       (unsigned long long)(dtype->size / width));
	if (is_time(dtype->number))
		prb_numpy_put_unit(out, dtype->unit);
}

void prb_dtype_put_name(struct prb_str *out, const struct prb_dtype *dtype)
{
	char code = dtype->number < TYPE_COUNT ? types[dtype->number].code : 0;

	if (is_named(dtype) && (code == 'g' || code == 'G')) {
		prb_str_puts(out, dtype->kind == 'c' ? "complex256" : "float128");
	} else if (is_named(dtype)) {
		prb_str_puts(out, types[dtype->number].name);
	} else if (dtype->order == '>') {
		put_code_and_unit(out, ">", dtype);
	} else if (is_time(dtype->number)) {
		prb_str_puts(out, types[dtype->number].name);
		prb_numpy_put_unit(out, dtype->unit);
	} else {
		put_code_and_unit(out, dtype->number == TYPE_UNICODE ? "<" : "", dtype);
	}
}

static struct prb_error *put_dtype(struct prb_repr *r, const struct prb_dtype *dtype)
{
	const char *quote = is_named(dtype) ? "" : "'";

	prb_str_puts(r->out, "dtype=");
	if (dtype->fields)
		return prb_numpy_put_fields(r, dtype);
	prb_str_puts(r->out, quote);
	prb_dtype_put_name(r->out, dtype);
	prb_str_puts(r->out, quote);
	return NULL;
}

void prb_dtype_put_code(struct prb_str *out, const struct prb_dtype *dtype)
{
	if (dtype->number == TYPE_OBJECT)
		prb_str_putc(out, 'O');
	else if (dtype->kind == 'b')
		prb_str_putc(out, '?');
	else
		put_code_and_unit(out,
				  dtype->order == '>' ? ">"
				  : dtype->size == 1 || dtype->kind == 'S' || dtype->kind == 'V'
					  ? ""
					  : "<",
				  dtype);
}

bool prb_dtype_is_printable(const struct prb_dtype *dtype)
{
	bool text = dtype->number == TYPE_UNICODE;

	return dtype->number < TYPE_COUNT && !(text && dtype->order == '>') &&
	       (types[dtype->number].code || is_time(dtype->number) || dtype->number == TYPE_VOID);
}

static void put_shape(struct prb_repr *r, const struct prb_ndarray *array)
{
	prb_str_putc(r->out, '(');
	for (unsigned i = 0; i < array->dimensions; i++)
		prb_str_printf(r->out, "%s%lld", i ? ", " : "", (long long)array->shape[i]);
	prb_str_puts(r->out, array->dimensions == 1 ? ",)" : ")");
}

/* Appends a dtype without fields; false for numbers that are not the same everywhere. */
static bool put_dtype_repr(struct prb_repr *r, const struct prb_dtype *dtype)
{
	unsigned number = dtype->number;

	if (!prb_dtype_is_printable(dtype) || number == TYPE_VOID || types[number].code == 'g' ||
	    types[number].code == 'G')
		return false;
	/* "long long" is named like the "long" of the same size. */
	if ((number == TYPE_LONGLONG || number == TYPE_ULONGLONG) && dtype->order != '>')
		number -= TYPE_LONGLONG - TYPE_LONG;
	prb_str_puts(r->out, "dtype('");
	if (number == TYPE_OBJECT)
		prb_str_putc(r->out, 'O');
	else if (is_time(number) && dtype->order != '>')
		put_code_and_unit(r->out, "<", dtype);
	else if (number != dtype->number)
		prb_str_puts(r->out, types[number].name);
	else
		prb_dtype_put_name(r->out, dtype);
	prb_str_puts(r->out, "')");
	return true;
}

struct prb_error *prb_repr_ndarray_part(struct prb_repr *r, uint64_t object, const char *name,
					const char **type)
{
	struct prb_ndarray array;
	uint64_t count = 1;

	PRB_TRY(prb_ndarray_read(r, object, &array));
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
	*type = "dtype";
	return strcmp(name, "dtype") != 0 || !put_dtype_repr(r, &array.dtype)
		       ? prb_error_create(PRB_ERROR_NOT_FOUND, "not known")
		       : NULL;
}

struct prb_error *prb_repr_handle_dtype(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_dtype dtype;
	struct prb_error *err = prb_dtype_read(r, object, &dtype);

	if (!err && (dtype.fields || dtype.subarray)) {
		prb_str_puts(r->out, dtype.fields ? "dtype(" : "dtype((");
		PRB_TRY(prb_numpy_put_fields(r, &dtype));
		prb_str_puts(r->out, dtype.fields ? ")" : "))");
		return NULL;
	}
	if (prb_error_catch(&err, PRB_ERROR_BAD_DATA) || (!err && !put_dtype_repr(r, &dtype)))
		return prb_repr_handle_default(r, object, type);
	return err;
}

/* Behind its name. */
static struct prb_error *put_content(struct prb_repr *r, const struct prb_ndarray *array)
{
	prb_str_putc(r->out, '(');
	if (prb_dtype_is_printable(&array->dtype)) {
		PRB_TRY(prb_ndarray_put_items(r, array, 0, array->data));
		prb_str_puts(r->out, ", ");
	}
	prb_str_puts(r->out, "shape=");
	put_shape(r, array);
	prb_str_puts(r->out, ", ");
	PRB_TRY(put_dtype(r, &array->dtype));
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_ndarray_put(struct prb_repr *r, const struct prb_ndarray *array)
{
	prb_str_puts(r->out, "array");
	return put_content(r, array);
}

bool prb_ndarray_enter(struct prb_ndarray *array, uint64_t index)
{
	if (!array->dimensions || index >= array->shape[0])
		return false;
	array->data += index * array->strides[0];
	array->dimensions--;
	memmove(array->shape, array->shape + 1, array->dimensions * sizeof(*array->shape));
	memmove(array->strides, array->strides + 1, array->dimensions * sizeof(*array->strides));
	return true;
}

bool prb_dtype_is_object(const struct prb_dtype *dtype)
{
	return dtype->number == TYPE_OBJECT;
}

struct prb_error *prb_repr_handle_ndarray(struct prb_repr *r, uint64_t object,
					  struct prb_type *type)
{
	struct prb_ndarray array;

	PRB_TRY(prb_ndarray_read(r, object, &array));
	if (!prb_repr_enter(r, object, "array(...)"))
		return NULL;
	if (prb_type_is(type, "numpy.ndarray"))
		prb_str_puts(r->out, "array");
	else if (!strcmp(type->name, "recarray"))
		prb_str_puts(r->out, "rec.array");
	else
		PRB_TRY(prb_repr_put_name(r, type));
	PRB_TRY(put_content(r, &array));
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

	/* numpy 2 has the longer numbers as texts. */
	if (named && (types[number].code == 'g' || types[number].code == 'G')) {
		prb_str_putc(r->out, '\'');
		prb_numpy_put_number(r, types[number].code, bytes);
		prb_str_putc(r->out, '\'');
		return NULL;
	}
	prb_numpy_put_number(r, types[number].code, bytes);
	/* numpy 2 has its own parentheses around complex numbers. */
	if (named && !r->out->failed && r->out->data[start] == '(') {
		prb_str_remove(r->out, start, 1);
		prb_str_truncate(r->out, r->out->length - 1);
	}
	return NULL;
}

/* A datetime64 or timedelta64: the number, and its unit behind it. */
static struct prb_error *put_time_scalar(struct prb_repr *r, uint64_t object,
					 const struct prb_type *type, bool moment)
{
	struct {
		int64_t value;
		struct prb_numpy_unit unit;
	} scalar;
	bool numpy2;

	PRB_TRY(prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size, &scalar,
			     sizeof(scalar)));
	PRB_TRY(is_numpy2(r, type, &numpy2));
	prb_str_printf(r->out, "%s%s(", numpy2 ? "np." : "numpy.", type->name + strlen("numpy."));
	if (!prb_numpy_put_time_scalar(r->out, moment, scalar.value, scalar.unit, numpy2))
		return prb_repr_bad(object, "a time without a unit");
	prb_str_putc(r->out, ')');
	return NULL;
}

/* A void: its size, the address of its bytes, its type. */
static struct prb_error *put_void_scalar(struct prb_repr *r, uint64_t object,
					 const struct prb_type *type)
{
	uint64_t words[2];
	struct prb_dtype dtype;
	bool numpy2;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->var_size + 8, 2, words));
	PRB_TRY(prb_dtype_read(r, words[1], &dtype));
	PRB_TRY(is_numpy2(r, type, &numpy2));
	if (numpy2 || !dtype.fields)
		prb_str_puts(r->out, numpy2 ? "np.void(" : "void(");
	PRB_TRY(prb_numpy_put_void(r, &dtype, words[0]));
	if (numpy2 && dtype.fields) {
		prb_str_puts(r->out, ", dtype=");
		PRB_TRY(prb_numpy_put_fields(r, &dtype));
	}
	if (numpy2 || !dtype.fields)
		prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_ufunc(struct prb_repr *r, uint64_t object,
					struct prb_type *type __attribute__((unused)))
{
	enum { NAME = 5, BYTES = 100 };
	uint64_t address;
	char name[BYTES];

	PRB_TRY(prb_repr_member(r, object, NAME, &address));
	PRB_TRY(prb_repr_cstr(r, address, name, sizeof(name)));
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	prb_str_printf(r->out, "<ufunc '%s'>", name);
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
	/* Names of numpy 1. */
	if (strcmp(name, "bool_") == 0)
		number = 0;
	else if (strcmp(name, "float128") == 0)
		number = TYPE_LONGDOUBLE;
	else if (strcmp(name, "complex256") == 0)
		number = TYPE_CLONGDOUBLE;
	if (number == TYPE_VOID && !strcmp(type->name, "numpy.void"))
		return put_void_scalar(r, object, type);
	if (!strncmp(type->name, "numpy.", 6) && is_time(number))
		return put_time_scalar(r, object, type, number == TYPE_DATETIME);
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

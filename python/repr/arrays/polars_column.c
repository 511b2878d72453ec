/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A column of polars: a ChunkedArray in an Arc, whose functions' table says how large it is. Its
 * field has name and type; its chunks are Arrow arrays, each with a type of its own. The numbers of
 * the types are the same from polars 1.38 to 2.1; before, and perhaps later, they stand for others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "python/repr/core/handlers.h"
#include "python/repr/arrays/numpy.h"
#include "python/repr/arrays/polars.h"

enum { OLDEST = 1 << 16 | 38, NEWEST = 2 << 16 | 1 }; /* major << 16 | minor */
enum {
	NAME_SIZE = 24,
	NAME_INLINE = 192, /* and how long it is, in the last byte of a name with room left */
	DTYPE_SIZE = 48,
	FIELD_NAME = 64,
	PLAIN_SIZE = 56,    /* of a ChunkedArray */
	LOGICAL_SIZE = 112, /* of one with a type in front of it */
	CHUNKS_CHECKED = 64,
	CHUNK_COST = 128, /* of what may be walked through */
	TEXT_READ = 1 << 16,
	INLINE_TEXT = 12,
	SERIES_TAG = 255,
	SERIES_TAG_OLD = 31, /* before 1.44 */
};

/* By their number in polars, and in Arrow. Types of numpy: 1 int8 … 8 uint64, 11 and 12 floats. */
static const struct prb_polars_dtype dtypes[] = {
	[0] = {"Boolean", PRB_POLARS_BOOLEAN, 0, 1, 1, 1, 0, {}},
	[1] = {"UInt8", PRB_POLARS_NUMBER, 2, 1, 7, 3, 0, {}},
	[2] = {"UInt16", PRB_POLARS_NUMBER, 4, 2, 8, 4, 0, {}},
	[3] = {"UInt32", PRB_POLARS_NUMBER, 6, 4, 9, 5, 0, {}},
	[4] = {"UInt64", PRB_POLARS_NUMBER, 8, 8, 10, 6, 0, {}},
	[5] = {"UInt128", PRB_POLARS_UNREAD, 0, 16, 11, 0, 0, {}},
	[6] = {"Int8", PRB_POLARS_NUMBER, 1, 1, 2, 8, 0, {}},
	[7] = {"Int16", PRB_POLARS_NUMBER, 3, 2, 3, 9, 0, {}},
	[8] = {"Int32", PRB_POLARS_NUMBER, 5, 4, 4, 10, 0, {}},
	[9] = {"Int64", PRB_POLARS_NUMBER, 7, 8, 5, 11, 0, {}},
	[10] = {"Int128", PRB_POLARS_UNREAD, 0, 16, 6, 0, 0, {}},
	[11] = {"Float16", PRB_POLARS_UNREAD, 0, 2, 12, 0, 0, {}},
	[12] = {"Float32", PRB_POLARS_NUMBER, 11, 4, 13, 14, 0, {}},
	[13] = {"Float64", PRB_POLARS_NUMBER, 12, 8, 14, 15, 0, {}},
	[14] = {"Decimal", PRB_POLARS_UNREAD, 0, 16, 6, 0, 0, {}},
	[15] = {"String", PRB_POLARS_TEXT, 0, 16, 39, 31, 0, {}},
	[16] = {"Binary", PRB_POLARS_BINARY, 0, 16, 38, 33, 0, {}},
	[18] = {"Date", PRB_POLARS_DATE, 5, 4, 4, 16, 0, {}},
	[19] = {"Datetime", PRB_POLARS_MOMENT, 7, 8, 5, 18, 0, {}},
	[20] = {"Duration", PRB_POLARS_SPAN, 7, 8, 5, 19, 0, {}},
	[21] = {"Time", PRB_POLARS_TIME, 7, 8, 5, 20, 0, {}},
	[22] = {"Array", PRB_POLARS_UNREAD, 0, 0, 28, 0, 0, {}},
	[23] = {"List", PRB_POLARS_UNREAD, 0, 0, 29, 0, 0, {}},
	[24] = {"Object", PRB_POLARS_UNREAD, 0, 0, 0, 0, 0, {}},
	[25] = {"Null", PRB_POLARS_NULLS, 0, 0, 0, 0, 0, {}},
	[26] = {"Categorical", PRB_POLARS_UNREAD, 0, 0, 0, 0, 0, {}},
	[27] = {"Enum", PRB_POLARS_UNREAD, 0, 0, 0, 0, 0, {}},
	[28] = {"Struct", PRB_POLARS_UNREAD, 0, 0, 0, 0, 0, {}},
};
static const struct prb_polars_dtype *const nulls = &dtypes[25];

/* An item of the dict of a module. */
static struct prb_error *of_module(struct prb_repr *r, uint64_t module, const char *name,
				   uint64_t *ret)
{
	uint64_t dict;

	if (!prb_repr_is(r, module, "module"))
		return prb_repr_bad(module, "not a module");
	PRB_TRY(prb_repr_member(r, module, 0, &dict));
	return prb_repr_dict_get(r, dict, name, ret);
}

/* The module of the class has os, which has sys, which has the module that says the version. */
struct prb_error *prb_polars_check(struct prb_repr *r, const struct prb_type *type)
{
	prb_auto_str struct prb_str text = {};
	uint64_t method, globals, found;
	unsigned major, minor;
	struct prb_type *owner;

	PRB_TRY(prb_repr_lookup(r, type, "__repr__", &method, &owner));
	if (!prb_repr_is(r, method, "function"))
		return prb_repr_bad(method, "not a function");
	/* Its globals, behind its code where that comes first. */
	PRB_TRY(prb_repr_member(r, method, r->layout->function_code == r->layout->object_size,
				&globals));
	PRB_TRY(prb_repr_dict_get(r, globals, "os", &found));
	PRB_TRY(of_module(r, found, "sys", &found));
	PRB_TRY(of_module(r, found, "modules", &found));
	PRB_TRY(prb_repr_dict_get(r, found, "polars._plr", &found));
	PRB_TRY(of_module(r, found, "__version__", &found));
	PRB_TRY(prb_repr_text(r, found, 32, &text));
	if (sscanf(prb_str_text(&text), "%3u.%3u.", &major, &minor) != 2)
		return prb_repr_bad(found, "not a version");
	if ((major << 16 | minor) < OLDEST || (major << 16 | minor) > NEWEST)
		return prb_repr_bad(found, "an unknown version of polars");
	return NULL;
}

/* A name: in its 24 bytes, or elsewhere. */
static struct prb_error *read_name(struct prb_repr *r, uint64_t address,
				   struct prb_polars_text *ret)
{
	union {
		uint8_t bytes[NAME_SIZE];
		uint64_t words[NAME_SIZE / 8];
	} name;
	unsigned last;

	PRB_TRY(prb_mem_read(r->mem, address, &name, sizeof(name)));
	last = name.bytes[NAME_SIZE - 1];
	if (last >= NAME_INLINE + NAME_SIZE) {
		*ret = (struct prb_polars_text){name.words[0], name.words[1]};
		return last <= NAME_INLINE + NAME_SIZE + 1 && ret->length < TEXT_READ
			       ? NULL
			       : prb_repr_bad(address, "not a name");
	}
	*ret = (struct prb_polars_text){address, last >= NAME_INLINE ? last - NAME_INLINE
								     : (unsigned)NAME_SIZE};
	return NULL;
}

static struct prb_error *read_dtype(struct prb_repr *r, uint64_t address,
				    struct prb_polars_dtype *ret)
{
	enum { ZONE = 8, UNITS = 3 };
	uint8_t bytes[DTYPE_SIZE];

	PRB_TRY(prb_mem_read(r->mem, address, bytes, sizeof(bytes)));
	if (bytes[0] >= PRB_ARRAY_SIZE(dtypes) || !dtypes[bytes[0]].name)
		return prb_repr_bad(address, "not a type");
	*ret = dtypes[bytes[0]];
	if (ret->kind != PRB_POLARS_MOMENT && ret->kind != PRB_POLARS_SPAN)
		return NULL;
	ret->unit = bytes[1];
	if (ret->unit >= UNITS)
		return prb_repr_bad(address, "not a unit");
	/* Another last byte stands for none. */
	if (ret->kind == PRB_POLARS_MOMENT &&
	    bytes[ZONE + NAME_SIZE - 1] <= NAME_INLINE + NAME_SIZE)
		return read_name(r, address + ZONE, &ret->zone);
	return NULL;
}

/* Words of an Arc: two counts, in front of what it holds. */
static struct prb_error *check_arc(struct prb_repr *r, uint64_t address)
{
	enum { REFERENCES_MAX = 1 << 30 };
	uint64_t counts[2];

	PRB_TRY(prb_repr_words(r, address, 2, counts));
	for (int i = 0; i < 2; i++)
		if (!counts[i] || counts[i] > REFERENCES_MAX)
			return prb_repr_bad(address, "not a reference that is held");
	return NULL;
}

/* Texts and bytes lie elsewhere. In a single value, their numbers are one higher from polars 2 on.
 */
static bool has_views(const struct prb_polars_dtype *dtype)
{
	return dtype->kind == PRB_POLARS_TEXT || dtype->kind == PRB_POLARS_BINARY;
}

/* Bytes that an array lies in. */
static struct prb_error *read_storage(struct prb_repr *r, uint64_t storage, uint64_t *start,
				      uint64_t *size)
{
	uint64_t words[2];

	PRB_TRY(prb_repr_words(r, storage + 32, 2, words));
	*start = words[0];
	*size = words[1];
	return NULL;
}

/* An array of Arrow, with all that is needed of one value. */
struct array {
	uint64_t first, length;	 /* of values; of a bitmap, its first byte */
	uint64_t offset;	 /* of bits in that */
	uint64_t present, shift; /* bitmap of values that there are, or 0; bits in front of it */
	uint64_t buffers, buffer_count;
};

/* A bitmap: storage, first bit, count. */
static struct prb_error *open_bitmap(struct prb_repr *r, const uint64_t *words, uint64_t length,
				     uint64_t *start, uint64_t *shift)
{
	uint64_t size, bits;

	PRB_TRY(read_storage(r, words[0], start, &size));
	*shift = words[1];
	if (words[2] != length || !prb_add(words[1], length, &bits) || (bits + 7) / 8 > size)
		return prb_repr_bad(words[0], "not a bitmap of this array");
	return NULL;
}

static struct prb_error *open_values(struct prb_repr *r, const uint64_t *words, unsigned width,
				     struct array *ret)
{
	uint64_t start, size, bytes;

	*ret = (struct array){.first = words[1], .length = words[2]};
	if (!ret->length)
		return NULL;
	PRB_TRY(read_storage(r, words[0], &start, &size));
	if (!prb_mul(ret->length, width, &bytes) || ret->first < start ||
	    ret->first - start > size || bytes > size - (ret->first - start))
		return prb_repr_bad(words[0], "shorter than its array");
	return NULL;
}

static struct prb_error *open_array(struct prb_repr *r, const struct prb_polars_dtype *dtype,
				    uint64_t address, struct array *ret)
{
	enum { DATA = 4, WORDS = 16, BITS_VALID = 8, PLAIN_VALID = 7, VIEWS_VALID = 10 };
	bool bits = dtype->kind == PRB_POLARS_BOOLEAN;
	bool views = has_views(dtype);
	size_t valid = bits ? BITS_VALID : views ? VIEWS_VALID : PLAIN_VALID;
	uint64_t words[WORDS], pair[2], size; /* the array, and its functions' table */

	PRB_TRY(prb_repr_words(r, address, 2, pair));
	PRB_TRY(prb_repr_word(r, pair[1] + 8, &size));
	if (size != (bits ? 96 : views ? 128 : 88))
		return prb_repr_bad(address, "an array of another kind");
	PRB_TRY(prb_repr_words(r, pair[0], size / 8, words));
	/* Arrays of views are of two kinds, which the first byte tells apart. */
	if ((words[0] & 0xff) != dtype->arrow)
		return prb_repr_bad(address, "an array of another type");
	if (bits) {
		*ret = (struct array){.length = words[DATA + 2]};
		PRB_TRY(open_bitmap(r, words + DATA, ret->length, &ret->first, &ret->offset));
	} else {
		PRB_TRY(open_values(r, words + DATA, dtype->width, ret));
	}
	if (views) {
		ret->buffers = words[8];
		ret->buffer_count = words[9];
	}
	return words[valid] ? open_bitmap(r, words + valid, ret->length, &ret->present, &ret->shift)
			    : NULL;
}

/* Whether chunks and the whole agree, as far as they are of a type that is read. */
static struct prb_error *check_chunks(struct prb_repr *r, const struct prb_polars_series *series)
{
	uint64_t count = PRB_MIN(series->chunk_count, (uint64_t)CHUNKS_CHECKED), sum = 0;
	struct array array;

	if (series->dtype.kind == PRB_POLARS_UNREAD || series->dtype.kind == PRB_POLARS_NULLS)
		return NULL;
	for (uint64_t i = 0; i < count; i++) {
		PRB_TRY(prb_repr_walk(r, CHUNK_COST));
		PRB_TRY(open_array(r, &series->dtype, series->chunks + i * 16, &array));
		if (!prb_add(sum, array.length, &sum))
			return prb_repr_bad(series->chunks, "an impossible length");
	}
	if (sum > series->length || (count == series->chunk_count && sum != series->length))
		return prb_repr_bad(series->chunks, "chunks of another length");
	return NULL;
}

/* A column without values has its name where others have their field. */
static struct prb_error *open_nulls(struct prb_repr *r, uint64_t array,
				    struct prb_polars_series *ret)
{
	ret->dtype = *nulls;
	PRB_TRY(read_name(r, array + 24, &ret->name));
	return prb_repr_word(r, array + 48, &ret->length);
}

static struct prb_error *open_chunked(struct prb_repr *r, uint64_t array, uint64_t dtype,
				      struct prb_polars_series *ret)
{
	uint64_t words[6], first; /* capacity, address and count of chunks; field; length; nulls */

	PRB_TRY(prb_repr_words(r, array, PRB_ARRAY_SIZE(words), words));
	*ret = (struct prb_polars_series){
		.chunks = words[1], .chunk_count = words[2], .length = words[4]};
	if (!ret->chunk_count || ret->chunk_count > words[0])
		return prb_repr_bad(array, "without chunks");
	PRB_TRY(prb_repr_word(r, ret->chunks, &first));
	PRB_TRY(prb_repr_word(r, first, &first));
	if (!dtype && !(first & 0xff))
		return open_nulls(r, array, ret);
	PRB_TRY(check_arc(r, words[3]));
	PRB_TRY(read_name(r, words[3] + FIELD_NAME, &ret->name));
	PRB_TRY(read_dtype(r, dtype ? dtype : words[3] + 16, &ret->dtype));
	if (ret->length >> 48 || words[5] > ret->length)
		return prb_repr_bad(array, "an impossible length");
	return check_chunks(r, ret);
}

struct prb_error *prb_polars_series_open(struct prb_repr *r, uint64_t address,
					 struct prb_polars_series *ret)
{
	uint64_t pair[2],
		layout[2]; /* the Arc and the functions of what it holds; size, alignment */

	PRB_TRY(prb_repr_words(r, address, 2, pair));
	PRB_TRY(check_arc(r, pair[0]));
	PRB_TRY(prb_repr_words(r, pair[1] + 8, 2, layout));
	if (layout[0] == PLAIN_SIZE && layout[1] == 8)
		return open_chunked(r, pair[0] + 16, 0, ret);
	if (layout[0] == LOGICAL_SIZE && layout[1] == 16)
		return open_chunked(r, pair[0] + 16 + DTYPE_SIZE, pair[0] + 16, ret);
	return prb_repr_bad(address, "a series of another kind");
}

/* One value for all rows, which begins with its type. */
static struct prb_error *open_single(struct prb_repr *r, uint64_t address,
				     struct prb_polars_series *ret)
{
	enum { NAME = 96, LENGTH = 120 };
	bool views;
	uint8_t kind;

	*ret = (struct prb_polars_series){.single = address + DTYPE_SIZE};
	PRB_TRY(read_dtype(r, address, &ret->dtype));
	PRB_TRY(read_name(r, address + NAME, &ret->name));
	PRB_TRY(prb_repr_word(r, address + LENGTH, &ret->length));
	PRB_TRY(prb_mem_read(r->mem, ret->single, &kind, 1));
	views = has_views(&ret->dtype);
	if (!kind)
		ret->dtype.kind = PRB_POLARS_NULLS;
	else if (kind != ret->dtype.single && !(views && kind == ret->dtype.single + 1))
		ret->dtype.kind = PRB_POLARS_UNREAD;
	return NULL;
}

struct prb_error *prb_polars_column_open(struct prb_repr *r, uint64_t address, uint64_t height,
					 struct prb_polars_series *ret)
{
	enum { SERIES = 8 };
	uint64_t tag;

	PRB_TRY(prb_repr_word(r, address, &tag));
	tag &= 0xff;
	if (tag == SERIES_TAG || tag == SERIES_TAG_OLD)
		PRB_TRY(prb_polars_series_open(r, address + SERIES, ret));
	else
		PRB_TRY(open_single(r, address, ret));
	return ret->length == height ? NULL : prb_repr_bad(address, "a column of another length");
}

struct prb_error *prb_polars_put_text(struct prb_repr *r, struct prb_polars_text text)
{
	size_t read = PRB_MIN(text.length, (uint64_t)TEXT_READ), count = 0, most;
	prb_auto_free char *bytes = calloc(read + 4, 1); /* zeros end what is cut off */
	prb_auto_free uint32_t *wide = calloc(read + 1, sizeof(*wide));

	if (!bytes || !wide)
		return prb_error_nomem();
	PRB_TRY(read ? prb_mem_read(r->mem, text.address, bytes, read) : NULL);
	for (size_t at = 0; at < read; count++) {
		at += bytes[at] ? prb_text_decode(bytes + at, &wide[count]) : 1;
		if (wide[count] == PRB_TEXT_INVALID && read == text.length)
			return prb_repr_bad(text.address, "not UTF-8");
	}
	most = PRB_MIN((size_t)r->max.max_text, prb_repr_room(r));
	prb_repr_quote(r, wide, PRB_MIN(count, most));
	if (read < text.length)
		prb_str_puts(r->out, "…");
	else if (count > most)
		prb_str_printf(r->out, "…+%zu", count - most);
	return NULL;
}

static struct prb_error *put_bytes(struct prb_repr *r, struct prb_polars_text text)
{
	size_t most = PRB_MIN((size_t)r->max.max_text, prb_repr_room(r));
	size_t count = PRB_MIN(text.length, (uint64_t)most);
	prb_auto_free uint8_t *bytes = calloc(count + 1, 1);
	prb_auto_free uint32_t *wide = calloc(count + 1, sizeof(*wide));

	if (!bytes || !wide)
		return prb_error_nomem();
	PRB_TRY(count ? prb_mem_read(r->mem, text.address, bytes, count) : NULL);
	for (size_t i = 0; i < count; i++)
		wide[i] = bytes[i];
	prb_repr_quote_bytes(r, wide, count);
	if (count < text.length)
		prb_str_printf(r->out, "…+%llu", (unsigned long long)(text.length - count));
	return NULL;
}

/* A view: how long; then the text, or its first four bytes, the number of a buffer, and where in
 * it. */
static struct prb_error *find_text(struct prb_repr *r, const struct array *array, uint64_t row,
				   struct prb_polars_text *ret)
{
	uint64_t at = array->first + row * 16, buffer[3]; /* storage, address, length */
	uint32_t view[4], prefix;

	PRB_TRY(prb_mem_read(r->mem, at, view, sizeof(view)));
	*ret = (struct prb_polars_text){at + 4, view[0]};
	if (view[0] <= INLINE_TEXT)
		return NULL;
	if (view[2] >= array->buffer_count)
		return prb_repr_bad(at, "no such buffer");
	PRB_TRY(prb_repr_words(r, array->buffers + view[2] * UINT64_C(24), 3, buffer));
	if (view[3] > buffer[2] || view[0] > buffer[2] - view[3])
		return prb_repr_bad(at, "a text beyond its buffer");
	ret->address = buffer[1] + view[3];
	PRB_TRY(prb_mem_read(r->mem, ret->address, &prefix, sizeof(prefix)));
	return prefix == view[1] ? NULL : prb_repr_bad(at, "a text that begins with another");
}

static struct prb_error *read_bit(struct prb_repr *r, uint64_t bitmap, uint64_t bit, bool *ret)
{
	uint8_t byte;

	PRB_TRY(prb_mem_read(r->mem, bitmap + bit / 8, &byte, 1));
	*ret = byte >> bit % 8 & 1;
	return NULL;
}

static void put_time(struct prb_str *out, int64_t value)
{
	long long seconds = value / 1000000000, rest = value % 1000000000;

	prb_str_printf(out, "'%02lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60,
		       seconds % 60);
	prb_str_printf(out,
		       rest % 1000 ? ".%09lld'"
		       : rest	   ? ".%06lld'"
				   : "'",
		       rest % 1000 ? rest : rest / 1000);
}

/* Puts a value that is a number of units. */
static struct prb_error *put_units(struct prb_repr *r, const struct prb_polars_dtype *dtype,
				   uint64_t address)
{
	static const int32_t bases[] = {10, 9, 8}; /* of numpy: ns, µs, ms */
	struct prb_numpy_unit unit = {dtype->kind == PRB_POLARS_DATE ? 4 : bases[dtype->unit], 1};
	int64_t value = 0;
	int32_t days;

	if (dtype->kind == PRB_POLARS_DATE) {
		PRB_TRY(prb_mem_read(r->mem, address, &days, sizeof(days)));
		value = days;
	} else {
		PRB_TRY(prb_mem_read(r->mem, address, &value, sizeof(value)));
	}
	if (dtype->kind == PRB_POLARS_TIME) {
		put_time(r->out, value);
		return NULL;
	}
	prb_str_putc(r->out, '\'');
	if (!prb_numpy_put_moment(r->out, value, unit))
		return prb_repr_bad(address, "not a moment");
	prb_str_puts(r->out, dtype->zone.address ? "Z'" : "'");
	return NULL;
}

static struct prb_error *put_value(struct prb_repr *r, const struct prb_polars_dtype *dtype,
				   const struct array *array, uint64_t row)
{
	const struct prb_dtype number = {
		.number = dtype->number, .size = dtype->width, .order = '<', .kind = 'i'};
	uint64_t address = array->first + row * dtype->width;
	struct prb_polars_text text;
	bool bit;

	switch (dtype->kind) {
	case PRB_POLARS_BOOLEAN:
		PRB_TRY(read_bit(r, array->first, array->offset + row, &bit));
		prb_str_puts(r->out, bit ? "True" : "False");
		return NULL;
	case PRB_POLARS_TEXT:
	case PRB_POLARS_BINARY:
		PRB_TRY(find_text(r, array, row, &text));
		return dtype->kind == PRB_POLARS_TEXT ? prb_polars_put_text(r, text)
						      : put_bytes(r, text);
	case PRB_POLARS_NUMBER:
	case PRB_POLARS_SPAN:
		return prb_ndarray_put_item(r, &number, address);
	default:
		return put_units(r, dtype, address);
	}
}

static struct prb_error *put_present(struct prb_repr *r, const struct prb_polars_dtype *dtype,
				     const struct array *array, uint64_t row)
{
	bool present = true;

	if (array->present)
		PRB_TRY(read_bit(r, array->present, array->shift + row, &present));
	if (present)
		return put_value(r, dtype, array, row);
	prb_str_puts(r->out, "None");
	return NULL;
}

/* A number lies behind its kind, as far as it is aligned; of a text there are the address and the
 * length, of bytes also how many there is room for. */
static struct prb_error *put_single(struct prb_repr *r, const struct prb_polars_series *series)
{
	const struct prb_polars_dtype *dtype = &series->dtype;
	struct array array = {.first = series->single + dtype->width};
	struct prb_polars_text text;
	uint64_t words[3];

	switch (dtype->kind) {
	case PRB_POLARS_TEXT:
		PRB_TRY(read_name(r, series->single + 8, &text));
		return prb_polars_put_text(r, text);
	case PRB_POLARS_BINARY:
		PRB_TRY(prb_repr_words(r, series->single + 8, 3, words));
		if (words[2] > words[0])
			return prb_repr_bad(series->single, "more bytes than there is room for");
		return put_bytes(r, (struct prb_polars_text){words[1], words[2]});
	default:
		return put_value(r, dtype, &array, 0);
	}
}

struct prb_error *prb_polars_put_values(struct prb_repr *r, const struct prb_polars_series *series)
{
	struct prb_items items = {.r = r, .total = series->length};
	uint64_t chunk = 0, before = 0; /* values in front of the present chunk */
	struct array array = {};

	if (series->dtype.kind == PRB_POLARS_UNREAD) {
		prb_str_printf(r->out, series->length ? "[…+%llu]" : "[]",
			       (unsigned long long)series->length);
		return NULL;
	}
	prb_str_putc(r->out, '[');
	while (prb_items_next(&items)) {
		if (series->dtype.kind == PRB_POLARS_NULLS) {
			prb_str_puts(r->out, "None");
			continue;
		}
		if (series->single) {
			PRB_TRY(put_single(r, series));
			continue;
		}
		while (items.done - 1 - before >= array.length) {
			before += array.length;
			if (chunk == series->chunk_count)
				return prb_repr_bad(series->chunks, "too few values");
			PRB_TRY(prb_repr_walk(r, CHUNK_COST));
			PRB_TRY(open_array(r, &series->dtype, series->chunks + chunk++ * 16,
					   &array));
		}
		PRB_TRY(put_present(r, &series->dtype, &array, items.done - 1 - before));
	}
	prb_str_putc(r->out, ']');
	return NULL;
}

struct prb_error *prb_polars_put_dtype(struct prb_repr *r, const struct prb_polars_dtype *dtype)
{
	static const char *const units[] = {"ns", "us", "ms"};
	bool moment = !strcmp(dtype->name, "Datetime");

	prb_str_puts(r->out, dtype->name);
	if (!moment && strcmp(dtype->name, "Duration") != 0)
		return NULL;
	prb_str_printf(r->out, "(time_unit='%s'", units[dtype->unit]);
	if (moment) {
		prb_str_puts(r->out, ", time_zone=");
		if (dtype->zone.address)
			PRB_TRY(prb_polars_put_text(r, dtype->zone));
		else
			prb_str_puts(r->out, "None");
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Values of one column or index of pandas. Its classes change from version to version, and compiled
 * ones do not describe where their attributes are. So an attribute is taken from the __dict__ or a
 * slot, or else is the first word of the object that leads to what it has to be.
 */
#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"
#include "python/repr/arrays/pandas.h"

enum { WORDS_MAX = 32, LOWEST = 0x10000, LEVELS_MAX = 16 };
static const uint64_t highest = UINT64_C(1) << 56; /* of a process, on all architectures */
enum { LIST = 1 << 25 }; /* flag of list and of the classes derived from it */

const char *prb_type_short_name(const struct prb_type *type)
{
	const char *dot = strrchr(type->name, '.');

	return dot ? dot + 1 : type->name;
}

static bool is_address(uint64_t word)
{
	return word >= LOWEST && word < highest && word % sizeof(word) == 0;
}

/* The type of the type at @p type; 0 if there is none. */
static uint64_t type_at(struct prb_repr *r, uint64_t type)
{
	uint64_t found = 0;

	if (is_address(type))
		prb_error_destroy(
			prb_repr_word(r, type + (uint64_t)r->layout->object_type, &found));
	return is_address(found) ? found : 0;
}

/* The class `type`, which is the type of itself, from any class. */
static uint64_t find_type_of_types(struct prb_repr *r, uint64_t type)
{
	enum { STEPS = 4 };

	for (int i = 0; i < STEPS; i++) {
		uint64_t its = type_at(r, type);

		if (its == type)
			return type;
		type = its;
	}
	return 0;
}

/* Whether a word leads to an object. It is looked at in this order so that what is no object is
 * mostly recognised before memory elsewhere is read. */
static bool read_type(struct prb_repr *r, uint64_t word, uint64_t meta, struct prb_type **ret)
{
	uint64_t type = type_at(r, word), its = type ? type_at(r, type) : 0;

	if (!its || (its != meta && type_at(r, its) != meta))
		return false;

	struct prb_error *err = prb_repr_type(r, type, ret);
	bool ok = !err;

	prb_error_destroy(err);
	return ok;
}

struct prb_error *prb_repr_find_word(struct prb_repr *r, uint64_t object,
				     prb_part_wanted_fn *wanted, uint64_t *ret)
{
	uint64_t words[WORDS_MAX], meta;
	struct prb_type *type, *its;
	size_t count;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	meta = find_type_of_types(r, type->address);
	if (type->basicsize <= r->layout->object_size)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it has no members");
	count = (size_t)(type->basicsize - r->layout->object_size) / sizeof(*words);
	count = PRB_MIN(count, (size_t)WORDS_MAX);
	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, count, words));
	for (size_t i = 0; i < count; i++)
		if (read_type(r, words[i], meta, &its) && wanted(its)) {
			*ret = words[i];
			return NULL;
		}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "it has no such member");
}

struct prb_error *prb_repr_list(struct prb_repr *r, uint64_t object, uint64_t *items,
				uint64_t *count)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	if (!(type->flags & LIST))
		return prb_repr_bad(object, "not a list");
	PRB_TRY(prb_repr_size(r, object, count));
	return prb_repr_word(r, object + (uint64_t)r->layout->list_items, items);
}

static bool is_array(const struct prb_type *type)
{
	return prb_type_is(type, "numpy.ndarray");
}

static bool is_zoned(const struct prb_type *type)
{
	return !strcmp(prb_type_short_name(type), "DatetimeTZDtype");
}

static bool is_text_dtype(const struct prb_type *type)
{
	return !strcmp(prb_type_short_name(type), "StringDtype");
}

bool prb_is_category_dtype(const struct prb_type *type)
{
	return !strcmp(prb_type_short_name(type), "CategoricalDtype");
}

static struct prb_error *open_array(struct prb_repr *r, uint64_t object, uint64_t row,
				    struct prb_frame_column *ret)
{
	prb_auto_str struct prb_str name = {};
	struct prb_ndarray array;

	PRB_TRY(prb_ndarray_read(r, object, &array));
	if (array.dimensions < 1 || array.dimensions > 2 ||
	    (array.dimensions == 2 && row >= array.shape[0]))
		return prb_repr_bad(object, "not an array of columns");
	ret->count = array.shape[array.dimensions - 1];
	ret->stride = array.strides[array.dimensions - 1];
	ret->first = array.data + (array.dimensions == 2 ? row * array.strides[0] : 0);
	ret->dtype = array.dtype;
	ret->kind = prb_dtype_is_printable(&array.dtype) ? PRB_FRAME_ARRAY : PRB_FRAME_UNREAD;
	prb_dtype_put_name(&name, &array.dtype);
	snprintf(ret->name, sizeof(ret->name), "%s", prb_str_text(&name));
	return NULL;
}

/* Nullable numbers: an array, and one that says which are missing. */
static struct prb_error *open_masked(struct prb_repr *r, uint64_t values,
				     struct prb_frame_column *ret, bool *done)
{
	struct prb_frame_column mask = {};
	uint64_t data, missing;
	struct prb_error *err = prb_repr_instance_get(r, values, "_mask", &missing);

	*done = !err;
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	PRB_TRY(prb_repr_instance_get(r, values, "_data", &data));
	if (!prb_repr_is(r, data, "numpy.ndarray") || !prb_repr_is(r, missing, "numpy.ndarray"))
		return prb_repr_bad(values, "not an array with a mask");
	PRB_TRY(open_array(r, data, 0, ret));
	PRB_TRY(open_array(r, missing, 0, &mask));
	if (mask.dtype.size != 1 || mask.count != ret->count)
		return prb_repr_bad(values, "a mask of another size");
	ret->mask = mask.first;
	ret->mask_stride = mask.stride;
	if (!strcmp(ret->name, "bool"))
		strcpy(ret->name, "boolean");
	else if (!strncmp(ret->name, "uint", 4))
		memcpy(ret->name, "UI", 2);
	else
		ret->name[0] = (char)toupper(ret->name[0]);
	return NULL;
}

/* The missing value shows which of the two text types it is. */
static struct prb_error *name_text(struct prb_repr *r, uint64_t values,
				   struct prb_frame_column *ret)
{
	uint64_t dtype, missing;
	struct prb_error *err = prb_repr_find_word(r, values, is_text_dtype, &dtype);
	bool plain = false;

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = prb_repr_instance_get(r, values, "_dtype", &dtype);

	if (!err)
		err = prb_repr_attribute(r, dtype, "_na_value", &missing);
	if (!err)
		plain = prb_repr_is(r, missing, "float");
	strcpy(ret->name, plain ? "str" : "string");
	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? NULL : err;
}

static struct prb_error *name_moments(struct prb_repr *r, uint64_t values,
				      struct prb_frame_column *ret)
{
	prb_auto_str struct prb_str name = {};
	struct prb_str *out = r->out;
	size_t start = r->start;
	uint64_t dtype, zone;
	struct prb_error *err = prb_repr_find_word(r, values, is_zoned, &dtype);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	ret->utc = true;
	PRB_TRY(prb_repr_attribute(r, dtype, "_tz", &zone));
	r->out = &name;
	r->start = 0;
	prb_str_puts(&name, ret->name);
	prb_str_truncate(&name, name.length - 1); /* the bracket behind the unit */
	prb_str_puts(&name, ", ");
	err = prb_repr_object(r, zone);
	prb_str_putc(&name, ']');
	r->out = out;
	r->start = start;
	snprintf(ret->name, sizeof(ret->name), "%s", prb_str_text(&name));
	return err;
}

static struct prb_error *name_categories(struct prb_repr *r, uint64_t values,
					 struct prb_frame_column *ret)
{
	uint64_t dtype;

	PRB_TRY(prb_repr_find_word(r, values, prb_is_category_dtype, &dtype));
	strcpy(ret->name, "category");
	return prb_repr_attribute(r, dtype, "_categories", &ret->categories);
}

static struct prb_error *name_plain(struct prb_repr *r __attribute__((unused)),
				    uint64_t values __attribute__((unused)),
				    struct prb_frame_column *ret __attribute__((unused)))
{
	return NULL;
}

static struct prb_error *name_spans(struct prb_repr *r __attribute__((unused)),
				    uint64_t values __attribute__((unused)),
				    struct prb_frame_column *ret)
{
	ret->span =
		ret->dtype.kind == 'm' && ret->dtype.unit.multiple == 1 && ret->dtype.order != '>';
	return NULL;
}

static bool is_periods(const struct prb_type *type)
{
	return !strcmp(prb_type_short_name(type), "PeriodDtype");
}

static struct prb_error *name_periods(struct prb_repr *r, uint64_t values,
				      struct prb_frame_column *ret)
{
	prb_auto_str struct prb_str name = {};
	uint64_t dtype;
	struct prb_error *err = prb_repr_find_word(r, values, is_periods, &dtype);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = prb_repr_instance_get(r, values, "_dtype", &dtype);
	PRB_TRY(err);
	PRB_TRY(prb_pandas_frequency(r, dtype, &ret->period));
	prb_pandas_put_frequency(&name, ret->period);
	snprintf(ret->name, sizeof(ret->name), "period[%s]", prb_str_text(&name));
	return NULL;
}

/* In a member of a compiled class since pandas 1.3, before in the __dict__. */
static struct prb_error *find_array(struct prb_repr *r, uint64_t values, uint64_t *ret)
{
	static const char *const before[] = {"_ndarray", "_data", "_codes"};
	struct prb_error *err = prb_repr_find_word(r, values, is_array, ret);

	for (size_t i = 0; i < PRB_ARRAY_SIZE(before) && prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
	     i++)
		err = prb_repr_instance_get(r, values, before[i], ret);
	if (!err && !prb_repr_is(r, *ret, "numpy.ndarray"))
		return prb_repr_bad(*ret, "not an array");
	return err;
}

/* An array, or an index of one. */
static struct prb_error *open_end(struct prb_repr *r, uint64_t values, struct prb_frame_column *ret)
{
	uint64_t data;
	struct prb_error *err = NULL;

	if (!prb_repr_is(r, values, "numpy.ndarray")) {
		err = prb_repr_instance_get(r, values, "_data", &data);
		if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) {
			PRB_TRY(err);
			values = data;
		}
	}
	*ret = (struct prb_frame_column){.count = PRB_FRAME_UNKNOWN};
	if (prb_repr_is(r, values, "numpy.ndarray"))
		return open_array(r, values, 0, ret);
	PRB_TRY(find_array(r, values, &data));
	return open_array(r, data, 0, ret);
}

/* Two arrays or indexes, and which ends belong to an interval. */
static struct prb_error *open_intervals(struct prb_repr *r, uint64_t values,
					struct prb_frame_column *ret)
{
	struct prb_frame_column left;
	uint64_t dtype, closed;
	bool first = false, last = false, both = false;

	PRB_TRY(prb_repr_instance_get(r, values, "_left", &ret->levels));
	PRB_TRY(prb_repr_instance_get(r, values, "_right", &ret->codes));
	PRB_TRY(prb_repr_instance_get(r, values, "_dtype", &dtype));
	PRB_TRY(prb_repr_attribute(r, dtype, "_closed", &closed));
	PRB_TRY(prb_repr_text_is(r, closed, "left", &first));
	PRB_TRY(prb_repr_text_is(r, closed, "right", &last));
	PRB_TRY(prb_repr_text_is(r, closed, "both", &both));
	ret->ends[0] = first || both ? '[' : '(';
	ret->ends[1] = last || both ? ']' : ')';
	PRB_TRY(open_end(r, ret->levels, &left));
	ret->count = left.count;
	ret->kind = PRB_FRAME_INTERVALS;
	snprintf(ret->name, sizeof(ret->name), "interval[%.50s, %s]", left.name,
		 both	 ? "both"
		 : first ? "left"
		 : last	 ? "right"
			 : "neither");
	return NULL;
}

/* Classes that keep their values in an array as they are. */
static const struct {
	const char *name;
	struct prb_error *(*finish)(struct prb_repr *r, uint64_t values,
				    struct prb_frame_column *ret);
} wrappers[] = {
	{"Categorical", name_categories},
	{"DatetimeArray", name_moments},
	{"NumpyExtensionArray", name_plain},
	{"PandasArray", name_plain},
	{"PeriodArray", name_periods},
	{"StringArray", name_text},
	{"StringArrayNumpySemantics", name_text},
	{"TimedeltaArray", name_spans},
};

/* Texts in Arrow's memory; what is not as known stays unread. */
static struct prb_error *open_texts(struct prb_repr *r, uint64_t values, struct prb_type *type,
				    struct prb_frame_column *ret)
{
	struct prb_frame_column texts = {};
	uint64_t object;
	struct prb_error *err = prb_repr_instance_get(r, values, "_pa_array", &object);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) /* before pandas 2.1 */
		err = prb_repr_instance_get(r, values, "_data", &object);
	if (!err)
		err = prb_arrow_texts_open(r, object, &texts);
	if (!err)
		err = name_text(r, values, &texts);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ||
	    prb_error_catch(&err, PRB_ERROR_BAD_DATA) || prb_error_catch(&err, PRB_ERROR_FAULT))
		return NULL;
	if (strstr(type->name, "NumpySemantics"))
		strcpy(texts.name, "str");
	*ret = texts;
	return err;
}

struct prb_error *prb_frame_column_open(struct prb_repr *r, uint64_t values, uint64_t row,
					struct prb_frame_column *ret)
{
	struct prb_type *type;
	uint64_t array;
	bool done;

	*ret = (struct prb_frame_column){.count = PRB_FRAME_UNKNOWN};
	if (prb_repr_is(r, values, "numpy.ndarray"))
		return open_array(r, values, row, ret);
	PRB_TRY(prb_repr_type_of(r, values, &type));
	PRB_TRY(open_masked(r, values, ret, &done));
	if (done)
		return NULL;
	if (!strcmp(prb_type_short_name(type), "IntervalArray"))
		return open_intervals(r, values, ret);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(wrappers); i++) {
		if (strcmp(prb_type_short_name(type), wrappers[i].name) != 0)
			continue;
		PRB_TRY(find_array(r, values, &array));
		PRB_TRY(open_array(r, array, row, ret));
		return wrappers[i].finish(r, values, ret);
	}
	snprintf(ret->name, sizeof(ret->name), "%.79s", prb_type_short_name(type));
	return strncmp(ret->name, "ArrowStringArray", strlen("ArrowStringArray")) != 0
		       ? NULL
		       : open_texts(r, values, type, ret);
}

static struct prb_error *open_range(struct prb_repr *r, uint64_t range,
				    struct prb_frame_column *ret)
{
	uint64_t words[3]; /* start, stop, step */
	__int128 span;

	if (!prb_repr_is(r, range, "range"))
		return prb_repr_bad(range, "not a range");
	PRB_TRY(prb_repr_words(r, range + (uint64_t)r->layout->object_size, 3, words));
	PRB_TRY(prb_repr_int(r, words[0], &ret->start));
	PRB_TRY(prb_repr_int(r, words[1], &ret->stop));
	PRB_TRY(prb_repr_int(r, words[2], &ret->step));
	if (!ret->step)
		return prb_repr_bad(range, "a range without a step");
	span = (__int128)ret->stop - ret->start;
	span = span * ret->step <= 0 ? 0
				     : (span + ret->step - (ret->step > 0 ? 1 : -1)) / ret->step;
	ret->kind = PRB_FRAME_RANGE;
	ret->count = (uint64_t)span;
	strcpy(ret->name, "int64");
	return NULL;
}

static struct prb_error *open_levels(struct prb_repr *r, uint64_t index,
				     struct prb_frame_column *ret)
{
	struct prb_frame_column first;
	uint64_t items, count;

	PRB_TRY(prb_repr_instance_get(r, index, "_codes", &ret->codes));
	PRB_TRY(prb_repr_list(r, ret->codes, &items, &count));
	if (!count)
		return prb_repr_bad(index, "an index without levels");
	PRB_TRY(prb_repr_word(r, items, &items));
	PRB_TRY(prb_frame_column_open(r, items, 0, &first));
	ret->kind = PRB_FRAME_LEVELS;
	ret->count = first.count;
	strcpy(ret->name, "object");
	return NULL;
}

struct prb_error *prb_frame_column_open_index(struct prb_repr *r, uint64_t index,
					      struct prb_frame_column *ret)
{
	uint64_t part;
	struct prb_error *err = prb_repr_instance_get(r, index, "_range", &part);

	*ret = (struct prb_frame_column){.count = PRB_FRAME_UNKNOWN};
	if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return err ? err : open_range(r, part, ret);
	err = prb_repr_instance_get(r, index, "_levels", &ret->levels);
	if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return err ? err : open_levels(r, index, ret);
	PRB_TRY(prb_repr_instance_get(r, index, "_data", &part));
	return prb_frame_column_open(r, part, 0, ret);
}

/* Of an index: the value at a position that codes name. */
static struct prb_error *put_coded(struct prb_repr *r, uint64_t index, int64_t code)
{
	struct prb_frame_column column;

	if (code < 0) {
		prb_str_puts(r->out, "nan");
		return NULL;
	}
	PRB_TRY(prb_frame_column_open_index(r, index, &column));
	/* Categories have none of their own. */
	if (column.categories || column.kind == PRB_FRAME_LEVELS)
		return prb_repr_bad(index, "an index of an index");
	return prb_frame_column_put(r, &column, (uint64_t)code);
}

static struct prb_error *put_parts(struct prb_repr *r, const struct prb_frame_column *column,
				   uint64_t row)
{
	uint64_t levels, codes, count, codes_count, level, code_array;
	struct prb_frame_column code;
	int64_t number;

	PRB_TRY(prb_repr_list(r, column->levels, &levels, &count));
	PRB_TRY(prb_repr_list(r, column->codes, &codes, &codes_count));
	if (count != codes_count || count > LEVELS_MAX)
		return prb_repr_bad(column->levels, "levels without codes");
	prb_str_putc(r->out, '(');
	for (uint64_t i = 0; i < count; i++) {
		PRB_TRY(prb_repr_word(r, levels + i * 8, &level));
		PRB_TRY(prb_repr_word(r, codes + i * 8, &code_array));
		PRB_TRY(prb_frame_column_open(r, code_array, 0, &code));
		if (code.kind != PRB_FRAME_ARRAY || row >= code.count)
			return prb_repr_bad(code_array, "not an array of codes");
		PRB_TRY(prb_ndarray_int(r, &code.dtype, code.first + row * code.stride, &number));
		if (i)
			prb_str_puts(r->out, ", ");
		PRB_TRY(put_coded(r, level, number));
	}
	prb_str_puts(r->out, count == 1 ? ",)" : ")");
	return NULL;
}

static struct prb_error *put_period(struct prb_repr *r, int64_t ordinal, uint32_t frequency)
{
	if (ordinal == INT64_MIN) {
		prb_str_puts(r->out, "NaT");
		return NULL;
	}
	prb_str_putc(r->out, '\'');
	PRB_TRY(prb_pandas_put_period(r, ordinal, frequency));
	prb_str_putc(r->out, '\'');
	return NULL;
}

static struct prb_error *put_interval(struct prb_repr *r, const struct prb_frame_column *column,
				      uint64_t row)
{
	struct prb_frame_column end;

	prb_str_putc(r->out, column->ends[0]);
	PRB_TRY(open_end(r, column->levels, &end));
	PRB_TRY(prb_frame_column_put(r, &end, row));
	prb_str_puts(r->out, ", ");
	PRB_TRY(open_end(r, column->codes, &end));
	PRB_TRY(prb_frame_column_put(r, &end, row));
	prb_str_putc(r->out, column->ends[1]);
	return NULL;
}

static struct prb_error *put_from_array(struct prb_repr *r, const struct prb_frame_column *column,
					uint64_t row)
{
	uint64_t address = column->first + row * column->stride;
	uint8_t missing = 0;
	int64_t code;

	if (column->mask)
		PRB_TRY(prb_mem_read(r->mem, column->mask + row * column->mask_stride, &missing,
				     1));
	if (missing) {
		prb_str_puts(r->out, "<NA>");
		return NULL;
	}
	if (column->categories) {
		PRB_TRY(prb_ndarray_int(r, &column->dtype, address, &code));
		return put_coded(r, column->categories, code);
	}
	if (column->period) {
		PRB_TRY(prb_ndarray_int(r, &column->dtype, address, &code));
		return put_period(r, code, column->period);
	}
	if (column->span) {
		PRB_TRY(prb_mem_read(r->mem, address, &code, sizeof(code)));
		prb_str_putc(r->out, '\'');
		prb_pandas_put_span(r, code, column->dtype.unit.base);
		prb_str_putc(r->out, '\'');
		return NULL;
	}
	PRB_TRY(prb_ndarray_put_item(r, &column->dtype, address));
	if (column->utc && !r->out->failed && isdigit(r->out->data[r->out->length - 2])) {
		prb_str_truncate(r->out, r->out->length - 1);
		prb_str_puts(r->out, "Z'");
	}
	return NULL;
}

struct prb_error *prb_frame_column_put(struct prb_repr *r, const struct prb_frame_column *column,
				       uint64_t row)
{
	if (row >= column->count)
		return prb_repr_bad(column->first, "no such row");
	switch (column->kind) {
	case PRB_FRAME_ARRAY:
		return put_from_array(r, column, row);
	case PRB_FRAME_RANGE:
		prb_str_printf(r->out, "%lld",
			       (long long)((__int128)column->start +
					   (__int128)column->step * (__int128)row));
		return NULL;
	case PRB_FRAME_LEVELS:
		return put_parts(r, column, row);
	case PRB_FRAME_INTERVALS:
		return put_interval(r, column, row);
	case PRB_FRAME_TEXTS:
		return prb_arrow_put_text(r, column, row);
	case PRB_FRAME_UNREAD:
		prb_str_puts(r->out, "…");
		return NULL;
	}
	return NULL;
}

struct prb_error *prb_frame_column_put_all(struct prb_repr *r,
					   const struct prb_frame_column *column, uint64_t count)
{
	struct prb_items items = {.r = r, .total = column->count};

	prb_str_putc(r->out, '[');
	if (column->kind == PRB_FRAME_UNREAD) {
		if (column->count != PRB_FRAME_UNKNOWN)
			count = column->count;
		if (count == PRB_FRAME_UNKNOWN)
			prb_str_puts(r->out, "…");
		else
			prb_str_printf(r->out, "…+%llu", (unsigned long long)count);
		prb_str_putc(r->out, ']');
		return NULL;
	}
	while (prb_items_next(&items))
		PRB_TRY(prb_frame_column_put(r, column, items.done - 1));
	prb_str_putc(r->out, ']');
	return NULL;
}

struct prb_error *prb_frame_column_find(struct prb_repr *r, const struct prb_frame_column *column,
					const char *text, uint64_t *row)
{
	uint64_t object;
	bool same = false;

	for (*row = 0; column->kind == PRB_FRAME_TEXTS && *row < column->count; ++*row) {
		PRB_TRY(prb_arrow_text_is(r, column, *row, text, &same));
		if (same)
			return NULL;
	}
	if (column->kind == PRB_FRAME_TEXTS)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no such name");
	if (column->kind != PRB_FRAME_ARRAY || column->dtype.kind != 'O')
		return prb_repr_bad(column->first, "not an array of objects");
	for (*row = 0; *row < column->count; ++*row) {
		PRB_TRY(prb_repr_walk(r, 1));
		PRB_TRY(prb_repr_word(r, column->first + *row * column->stride, &object));

		struct prb_error *err = prb_repr_text_is(r, object, text, &same);

		if (!err && same)
			return NULL;
		/* What is no text is not the one. */
		if (!prb_error_catch(&err, PRB_ERROR_BAD_DATA))
			PRB_TRY(err);
	}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no such name");
}

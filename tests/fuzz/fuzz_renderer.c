/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any cells under any names as a result in each format. The output is parsed, JSON by jansson and
 * the others by small readers of our own, and must equal the input. A table must have a line for
 * each row, and no terminal control sequences.
 */
#include "tests/fuzz/input.h"

#include <jansson.h>
#include <math.h>

#include "sql/render/renderer.h"

enum { MAX_COLUMNS = 6, MAX_ROWS = 40, MAX_CELLS = MAX_COLUMNS * MAX_ROWS };

struct result {
	char *names[MAX_COLUMNS];
	size_t columns, rows;
	struct prb_value cells[MAX_CELLS];
};

static char *take_bytes(struct input *input, size_t *length)
{
	size_t wanted = input_u8(input);

	wanted = PRB_MIN(wanted, input->size);

	char *text = calloc(1, wanted + 1);

	if (!text)
		abort();
	input_take(input, text, wanted);
	*length = wanted;
	return text;
}

static struct prb_value take_cell(struct input *input)
{
	struct prb_value value = {.kind = input_u8(input) % 5};
	uint64_t bits;

	switch (value.kind) {
	case PRB_VALUE_NULL:
		break;
	case PRB_VALUE_INTEGER:
		value.integer = (int64_t)input_u64(input);
		break;
	case PRB_VALUE_REAL:
		bits = input_u64(input);
		memcpy(&value.real, &bits, sizeof(bits));
		break;
	case PRB_VALUE_TEXT:
	case PRB_VALUE_BLOB:
		value.text = take_bytes(input, &value.length);
		break;
	}
	return value;
}

static void take_result(struct input *input, struct result *ret)
{
	size_t length;

	ret->columns = input_u8(input) % MAX_COLUMNS + 1;
	for (size_t i = 0; i < ret->columns; i++)
		ret->names[i] = take_bytes(input, &length);
	while (input->size && ret->rows < MAX_ROWS) {
		for (size_t i = 0; i < ret->columns; i++)
			ret->cells[ret->rows * ret->columns + i] = take_cell(input);
		ret->rows++;
	}
}

static void result_deinit(struct result *result)
{
	for (size_t i = 0; i < result->columns; i++)
		free(result->names[i]);
	for (size_t i = 0; i < result->rows * result->columns; i++)
		free((char *)result->cells[i].text);
}

static struct prb_error *collect(void *context, const char *text, size_t length)
{
	prb_str_append(context, text, length);
	return NULL;
}

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void must_succeed(struct prb_error *err)
{
	must(!err);
}

static void write_result(const struct result *result, const char *format,
			 struct prb_renderer_look look, struct prb_str *out)
{
	struct prb_renderer_column columns[MAX_COLUMNS];
	struct prb_renderer *r;

	for (size_t i = 0; i < result->columns; i++)
		columns[i].name = result->names[i];
	must_succeed(prb_renderer_create(prb_renderer_find(format), &look, collect, out, &r));
	must_succeed(prb_renderer_begin(r, columns, result->columns));
	for (size_t i = 0; i < result->rows; i++)
		must_succeed(prb_renderer_row(r, &result->cells[i * result->columns]));
	must_succeed(prb_renderer_end(r));
	prb_renderer_destroy(r);
	must(!out->failed);
}

/* Expected values */

/** Length of the UTF-8 sequence at @p p, by the table of the Unicode standard; 0: invalid. */
static size_t sequence(const unsigned char *p, size_t left)
{
	static const struct {
		unsigned char first, last, low, high, length;
	} forms[] = {
		{0x00, 0x7f, 0x80, 0xbf, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(forms); i++) {
		size_t length = forms[i].length;

		if (p[0] < forms[i].first || p[0] > forms[i].last || length > left)
			continue;
		if (length > 1 && (p[1] < forms[i].low || p[1] > forms[i].high))
			return 0;
		for (size_t n = 2; n < length; n++)
			if ((p[n] & 0xc0) != 0x80)
				return 0;
		return length;
	}
	return 0;
}

static void expected_text(const struct prb_value *value, struct prb_str *ret)
{
	const unsigned char *p = (const unsigned char *)value->text;

	for (size_t i = 0; i < value->length;) {
		size_t length =
			value->kind == PRB_VALUE_BLOB ? 0 : sequence(p + i, value->length - i);

		if (length)
			prb_str_append(ret, p + i, length);
		else
			prb_str_printf(ret, value->kind == PRB_VALUE_BLOB ? "%02x" : "\\udc%02x",
				       p[i]);
		i += length ? length : 1;
	}
}

/** Compares what a reader made of a cell that is no NULL. */
static void must_be(const struct prb_value *value, const char *text, size_t length)
{
	prb_auto_str struct prb_str expected = {};
	char *end = NULL;

	switch (value->kind) {
	case PRB_VALUE_NULL:
		must(!length);
		break;
	case PRB_VALUE_INTEGER:
		must(length && strtoll(text, &end, 10) == value->integer && end == text + length);
		break;
	case PRB_VALUE_REAL:
		must(length && (isnan(value->real) ? isnan(strtod(text, &end))
						   : strtod(text, &end) == value->real));
		must(end == text + length);
		break;
	case PRB_VALUE_TEXT:
	case PRB_VALUE_BLOB:
		expected_text(value, &expected);
		must(length == expected.length && !memcmp(text, prb_str_text(&expected), length));
		break;
	}
}

/* Readers */

static void check_json_value(const struct prb_value *value, const json_t *found)
{
	switch (value->kind) {
	case PRB_VALUE_NULL:
		must(json_is_null(found));
		break;
	case PRB_VALUE_INTEGER:
		must(json_is_integer(found) && json_integer_value(found) == value->integer);
		break;
	case PRB_VALUE_REAL:
		must(isfinite(value->real)
			     ? json_is_real(found) && json_real_value(found) == value->real
			     : json_is_null(found));
		break;
	case PRB_VALUE_TEXT:
	case PRB_VALUE_BLOB:
		must(json_is_string(found));
		must_be(value, json_string_value(found), json_string_length(found));
		break;
	}
}

static void check_object(const struct result *result, size_t row, json_t *object)
{
	size_t i = 0;

	/* Members keep their order, each under a unique name. */
	must(json_object_size(object) == result->columns);
	for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
		check_json_value(&result->cells[row * result->columns + i++],
				 json_object_iter_value(at));
}

static void check_json(const struct result *result)
{
	prb_auto_str struct prb_str out = {}, lines = {};
	json_error_t error;

	write_result(result, "json", (struct prb_renderer_look){}, &out);
	json_t *array =
		json_loadb(out.data, out.length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
	must(array && json_array_size(array) == result->rows);
	for (size_t row = 0; row < result->rows; row++)
		check_object(result, row, json_array_get(array, row));
	json_decref(array);

	/* The same objects, one per line. */
	write_result(result, "ndjson", (struct prb_renderer_look){}, &lines);
	for (size_t i = 0, row = 0; i < lines.length; row++) {
		size_t length = (size_t)((char *)memchr(lines.data + i, '\n', lines.length - i) -
					 (lines.data + i));
		json_t *object = json_loadb(lines.data + i, length, JSON_ALLOW_NUL, &error);

		must(object && row < result->rows);
		check_object(result, row, object);
		json_decref(object);
		i += length + 1;
	}
}

/** Reads a field of CSV up to its border; *quoted: it was in quotes. */
static const char *read_csv(const char *p, struct prb_str *field, bool *quoted)
{
	*quoted = *p == '"';
	if (!*quoted) {
		for (; *p != ',' && *p != '\n'; p++)
			prb_str_putc(field, *p);
		return p;
	}
	for (p++; *p != '"' || p[1] == '"'; p++) {
		p += *p == '"';
		prb_str_putc(field, *p);
	}
	return p + 1;
}

static void check_csv_cell(const struct result *result, const struct prb_value *value,
			   const struct prb_str *field, bool quoted)
{
	bool null = !field->length && (!quoted || result->columns == 1);

	if (value->kind == PRB_VALUE_NULL)
		must(null);
	else
		must((field->length || quoted));
	must_be(value, prb_str_text(field), field->length);
}

/** The first row is the header, which is read as texts. */
static void check_csv(const struct result *result)
{
	prb_auto_str struct prb_str out = {};
	const char *p, *end;

	write_result(result, "csv", (struct prb_renderer_look){}, &out);
	p = out.data;
	end = p + out.length;
	for (size_t row = 0; row <= result->rows; row++) {
		for (size_t i = 0; i < result->columns; i++) {
			prb_auto_str struct prb_str field = {};
			const char *name = result->names[i];
			struct prb_value header = {
				.kind = PRB_VALUE_TEXT, .text = name, .length = strlen(name)};
			bool quoted;

			p = read_csv(p, &field, &quoted);
			check_csv_cell(result,
				       row ? &result->cells[(row - 1) * result->columns + i]
					   : &header,
				       &field, quoted);
			must(*p++ == (i + 1 < result->columns ? ',' : '\n'));
		}
	}
	must(p == end);
}

/** Reads a field of TSV; *null: it is \N. */
static const char *read_tsv(const char *p, struct prb_str *field, bool *null)
{
	*null = p[0] == '\\' && p[1] == 'N';
	for (p += *null * 2; *p != '\t' && *p != '\n'; p++) {
		must(*p != '\r' && *p != '\0');
		if (*p == '\\' && p[1] == 'u') {
			/* Bytes that are not UTF-8: "\udcXX", distinct from all other escapes. */
			prb_str_append(field, p, 6);
			p += 5;
		} else if (*p == '\\') {
			p++;
			must(strchr("tnr0\\", *p));
			prb_str_putc(field, *p == 't'	? '\t'
					    : *p == 'n' ? '\n'
					    : *p == 'r' ? '\r'
					    : *p == '0' ? '\0'
							: '\\');
		} else {
			prb_str_putc(field, *p);
		}
	}
	return p;
}

static void check_tsv(const struct result *result)
{
	prb_auto_str struct prb_str out = {};
	const char *p;

	write_result(result, "tsv", (struct prb_renderer_look){}, &out);
	p = strchr(out.data, '\n') + 1;
	for (size_t row = 0; row < result->rows; row++) {
		for (size_t i = 0; i < result->columns; i++) {
			const struct prb_value *value = &result->cells[row * result->columns + i];
			prb_auto_str struct prb_str field = {};
			bool null;

			p = read_tsv(p, &field, &null);
			must(null == (value->kind == PRB_VALUE_NULL));
			must_be(value, prb_str_text(&field), field.length);
			must(*p++ == (i + 1 < result->columns ? '\t' : '\n'));
		}
	}
	must(!*p);
}

static void check_table(const struct result *result, size_t width)
{
	prb_auto_str struct prb_str out = {};
	size_t lines = 0;

	write_result(result, "table", (struct prb_renderer_look){.terminal = true, .width = width},
		     &out);
	for (size_t i = 0; i < out.length; i++) {
		lines += out.data[i] == '\n';
		must(out.data[i] == '\n' || (unsigned char)out.data[i] >= ' ');
		must(out.data[i] != 0x7f);
	}
	must(lines == result->rows + 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	size_t width = input_u8(&input);
	struct result result = {};

	take_result(&input, &result);
	check_json(&result);
	check_csv(&result);
	check_tsv(&result);
	check_table(&result, width);
	result_deinit(&result);
	return 0;
}

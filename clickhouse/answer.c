/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "clickhouse/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { MAX_LINE = 16 << 20 };

static struct prb_error *bad(const char *why)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "the answer of ClickHouse makes no sense: %s",
				why);
}

/** Undoes the escapes of a cell of @p length bytes, and puts a NUL behind it. */
static void unescape(struct prb_str *s, const char *text, size_t length)
{
	static const char from[] = "tnrbf0a\\", to[] = "\t\n\r\b\f\0\a\\";

	for (size_t i = 0; i < length; i++) {
		const char *known;

		if (text[i] != '\\' || i + 1 == length) {
			prb_str_putc(s, text[i]);
			continue;
		}
		i++;
		known = text[i] ? strchr(from, text[i]) : NULL;
		prb_str_putc(s, known ? to[known - from] : text[i]);
	}
	prb_str_putc(s, '\0');
}

/** The kind of a column's values, by its type: "Nullable(Int64)". */
static unsigned char kind_of(const char *type)
{
	static const char *const wrappers[] = {"Nullable(", "LowCardinality("};

	for (size_t i = 0; i < 2; i++)
		if (!strncmp(type, wrappers[i], strlen(wrappers[i])))
			return kind_of(type + strlen(wrappers[i]));
	if (!strncmp(type, "Int", 3) || !strncmp(type, "UInt", 4))
		return PRB_VALUE_INTEGER;
	return !strncmp(type, "Float", 5) ? PRB_VALUE_REAL : PRB_VALUE_TEXT;
}

static void convert(struct prb_value *value, unsigned char kind)
{
	char *end;

	if (!value->length)
		return;
	errno = 0;
	if (kind == PRB_VALUE_INTEGER) {
		value->integer = strtoll(value->text, &end, 10);
		if (!errno && end == value->text + value->length)
			value->kind = PRB_VALUE_INTEGER;
	} else if (kind == PRB_VALUE_REAL) {
		value->real = strtod(value->text, &end);
		if (end == value->text + value->length)
			value->kind = PRB_VALUE_REAL;
	}
}

/** Divides a line into values, which point into `cells`. */
static struct prb_error *divide(struct prb_answer *a, const char *line, size_t length, bool escaped)
{
	size_t count = 0, places[PRB_ANSWER_COLUMNS];

	prb_str_truncate(&a->cells, 0);
	for (const char *at = line, *end = line + length; at <= end;) {
		const char *tab = memchr(at, '\t', (size_t)(end - at));
		size_t size = (size_t)((tab ? tab : end) - at);
		struct prb_value *value = &a->values[count];

		if (count == PRB_ANSWER_COLUMNS)
			return bad("it has too many columns");
		*value = (struct prb_value){.kind = PRB_VALUE_TEXT};
		places[count] = a->cells.length;
		if (escaped && size == 2 && !memcmp(at, "\\N", 2))
			value->kind = PRB_VALUE_NULL;
		unescape(&a->cells, at, size);
		value->length = a->cells.length - places[count++] - 1;
		at += size + 1;
	}
	if (a->cells.failed)
		return prb_error_nomem();
	if (a->lines && count != a->columns)
		return bad("a row has other columns than the first line");
	a->columns = count;
	for (size_t i = 0; i < count; i++)
		a->values[i].text = a->cells.data + places[i];
	return NULL;
}

static struct prb_error *take_types(struct prb_answer *a)
{
	prb_auto_free const char **names = calloc(a->columns, sizeof(*names));
	const char *name = a->names;

	if (!names)
		return prb_error_nomem();
	for (size_t i = 0; i < a->columns; i++) {
		a->kinds[i] = kind_of(a->values[i].text);
		names[i] = name;
		name += strlen(name) + 1;
	}
	return a->handler->begin(a->handler->context, names, a->columns);
}

static struct prb_error *take_line(struct prb_answer *a, const char *line, size_t length)
{
	PRB_TRY(divide(a, line, length, a->lines > 1));
	if (!a->lines++) {
		/* A name with a NUL would count as two. */
		for (size_t i = 0; i < a->columns; i++)
			if (strlen(a->values[i].text) != a->values[i].length)
				return bad("a column has no name");
		a->names = a->cells.data;
		a->cells = (struct prb_str){};
		return NULL;
	}
	if (a->lines == 2)
		return take_types(a);
	for (size_t i = 0; i < a->columns; i++)
		if (a->values[i].kind == PRB_VALUE_TEXT)
			convert(&a->values[i], a->kinds[i]);
	return a->handler->row(a->handler->context, a->values);
}

struct prb_error *prb_answer_take(struct prb_answer *answer, const char *data, size_t length)
{
	for (const char *end = data + length; data < end;) {
		const char *line = memchr(data, '\n', (size_t)(end - data));
		size_t size = (size_t)((line ? line : end) - data);

		if (!line || answer->line.length) {
			if (answer->line.length + size > MAX_LINE)
				return bad("a row is longer than 16 MiB");
			prb_str_append(&answer->line, data, size);
		}
		if (answer->line.failed)
			return prb_error_nomem();
		if (!line)
			return NULL;
		if (answer->line.length)
			PRB_TRY(take_line(answer, answer->line.data, answer->line.length));
		else
			PRB_TRY(take_line(answer, data, size));
		prb_str_truncate(&answer->line, 0);
		data = line + 1;
	}
	return NULL;
}

struct prb_error *prb_answer_end(struct prb_answer *answer)
{
	return answer->line.length || answer->lines == 1 ? bad("it ends within a row") : NULL;
}

void prb_answer_deinit(struct prb_answer *answer)
{
	prb_str_deinit(&answer->line);
	prb_str_deinit(&answer->cells);
	free(answer->names);
}

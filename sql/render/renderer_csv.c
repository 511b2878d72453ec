/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Values divided by a character, for spreadsheets, data frames and the shell.
 *
 * csv: RFC 4180, but that lines end in a line feed alone. NULL is an empty field, an empty text is
 * "". In a result of one column NULL is "" too, as an empty line would be no row to most readers.
 *
 * tsv: no quotes; tab, line feed, carriage return, NUL and backslash are \t \n \r \0 \\, NULL is
 * \N, so each row is one line and each tab a border.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sql/render/renderer_private.h"

/** Appends text as UTF-8, byte for byte where it is; controls only where they do no harm. */
static void put_checked(const struct prb_renderer *renderer, struct prb_str *s, const char *text,
			size_t length)
{
	const char *end = text + length;

	while (text < end) {
		size_t plain = 0;
		uint32_t c;

		while (text + plain < end && text[plain] >= ' ' && text[plain] < 0x7f)
			plain++;
		prb_str_append(s, text, plain);
		text += plain;
		if (text == end)
			break;

		size_t used = prb_text_decode(text, &c);
		if (c == PRB_TEXT_INVALID)
			prb_str_printf(s, "\\udc%02x", (unsigned char)*text);
		else if (renderer->look.terminal && c != '\n' && c != '\t')
			prb_text_put(s, c, (unsigned char)*text);
		else
			prb_str_append(s, text, used);
		text += used;
	}
}

/* CSV */

static bool needs_quotes(const char *text, size_t length)
{
	if (!length || text[0] == ' ' || text[length - 1] == ' ')
		return true;
	for (size_t i = 0; i < length; i++)
		if (text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r')
			return true;
	return false;
}

static void put_csv_text(const struct prb_renderer *renderer, struct prb_str *s, const char *text,
			 size_t length)
{
	if (!needs_quotes(text, length)) {
		put_checked(renderer, s, text, length);
		return;
	}
	prb_str_putc(s, '"');
	for (size_t start = 0, i = 0; i <= length; i++) {
		if (i < length && text[i] != '"')
			continue;
		put_checked(renderer, s, text + start, i - start);
		if (i < length)
			prb_str_append(s, "\"\"", 2);
		start = i + 1;
	}
	prb_str_putc(s, '"');
}

static void put_csv_value(const struct prb_renderer *renderer, struct prb_str *s,
			  const struct prb_value *value)
{
	switch (value->kind) {
	case PRB_VALUE_NULL:
		if (renderer->columns == 1)
			prb_str_append(s, "\"\"", 2);
		break;
	case PRB_VALUE_INTEGER:
		prb_renderer_integer(s, value->integer);
		break;
	case PRB_VALUE_REAL:
		prb_renderer_real(s, value->real);
		break;
	case PRB_VALUE_TEXT:
		put_csv_text(renderer, s, value->length ? value->text : "", value->length);
		break;
	case PRB_VALUE_BLOB:
		if (!value->length)
			prb_str_append(s, "\"\"", 2);
		prb_renderer_hex(s, value->text, value->length);
		break;
	}
}

/* TSV */

static char tsv_escape(char c)
{
	switch (c) {
	case '\t':
		return 't';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\0':
		return '0';
	case '\\':
		return '\\';
	default:
		return 0;
	}
}

static void put_tsv_text(const struct prb_renderer *renderer, struct prb_str *s, const char *text,
			 size_t length)
{
	for (size_t start = 0, i = 0; i <= length; i++) {
		char letter = i < length ? tsv_escape(text[i]) : 0;

		if (i < length && !letter)
			continue;
		put_checked(renderer, s, text + start, i - start);
		if (letter)
			prb_str_append(s, (char[]){'\\', letter}, 2);
		start = i + 1;
	}
}

static void put_tsv_value(const struct prb_renderer *renderer, struct prb_str *s,
			  const struct prb_value *value)
{
	switch (value->kind) {
	case PRB_VALUE_NULL:
		prb_str_append(s, "\\N", 2);
		break;
	case PRB_VALUE_INTEGER:
		prb_renderer_integer(s, value->integer);
		break;
	case PRB_VALUE_REAL:
		prb_renderer_real(s, value->real);
		break;
	case PRB_VALUE_TEXT:
		put_tsv_text(renderer, s, value->length ? value->text : "", value->length);
		break;
	case PRB_VALUE_BLOB:
		prb_renderer_hex(s, value->text, value->length);
		break;
	}
}

static void put_line(struct prb_renderer *renderer, const struct prb_value *values, char border,
		     void (*put)(const struct prb_renderer *renderer, struct prb_str *s,
				 const struct prb_value *value))
{
	for (size_t i = 0; i < renderer->columns; i++) {
		if (i)
			prb_str_putc(&renderer->out, border);
		put(renderer, &renderer->out, &values[i]);
	}
	prb_str_putc(&renderer->out, '\n');
}

static struct prb_error *csv_row(struct prb_renderer *renderer, const struct prb_value *values)
{
	put_line(renderer, values, ',', put_csv_value);
	return NULL;
}

static struct prb_error *tsv_row(struct prb_renderer *renderer, const struct prb_value *values)
{
	put_line(renderer, values, '\t', put_tsv_value);
	return NULL;
}

/** The header: a row of the columns' names. */
static struct prb_error *header(struct prb_renderer *renderer)
{
	prb_auto_free struct prb_value *names = calloc(renderer->columns, sizeof(*names));

	if (!names)
		return prb_error_nomem();
	for (size_t i = 0; i < renderer->columns; i++)
		names[i] = (struct prb_value){.kind = PRB_VALUE_TEXT,
					      .text = renderer->names[i],
					      .length = strlen(renderer->names[i])};
	return renderer->format->ops->row(renderer, names);
}

static struct prb_error *end(struct prb_renderer *renderer)
{
	(void)renderer;
	return NULL;
}

const struct prb_renderer_ops prb_renderer_csv = {
	.begin = header,
	.row = csv_row,
	.end = end,
};

const struct prb_renderer_ops prb_renderer_tsv = {
	.begin = header,
	.row = tsv_row,
	.end = end,
};

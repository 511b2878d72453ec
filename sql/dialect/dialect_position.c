/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where in a script something is, as a person sees it. */
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "sql/dialect/dialect.h"

/* Columns that a line of a query may take, and the columns before the caret. */
enum { WINDOW = 74, WINDOW_BEFORE = 50 };

/** Decodes one character of [at, end); gives its bytes. */
static size_t decode(const char *script, size_t at, size_t end, uint32_t *c)
{
	char bytes[5] = {};

	memcpy(bytes, script + at, PRB_MIN(end - at, (size_t)4));
	/* Not at a NUL, which would be the end of a text. */
	if (!*bytes) {
		*c = 0;
		return 1;
	}
	return prb_text_decode(bytes, c);
}

/** Writes a character, a tab as a space; gives its columns. */
static size_t put_character(struct prb_str *s, uint32_t c, char byte)
{
	return prb_text_put(s, c == '\t' ? ' ' : c, (unsigned char)byte);
}

static size_t line_start(const char *script, size_t offset)
{
	while (offset && script[offset - 1] != '\n')
		offset--;
	return offset;
}

struct prb_script_position prb_script_position(const char *script, size_t length, size_t offset)
{
	struct prb_script_position position = {1, 1};
	size_t start;

	offset = PRB_MIN(offset, length);
	start = line_start(script, offset);
	for (size_t at = 0; at < start; at++)
		position.line += script[at] == '\n';
	while (start < offset) {
		uint32_t c;

		start += decode(script, start, length, &c);
		/* A byte inside a character is part of it. */
		position.column += start <= offset;
	}
	return position;
}

/** Appends the line [start, end) without what is far from @p offset; gives the caret's column. */
static size_t put_line(struct prb_str *s, const char *script, size_t start, size_t end,
		       size_t offset)
{
	prb_auto_str struct prb_str line = {};
	size_t column = 0, caret = 0, first = start, before = 0, at, bytes;
	uint32_t c;

	/* The first character to be shown: at most so many columns before the caret. */
	for (at = start; at < offset; at += bytes) {
		bytes = decode(script, at, end, &c);
		prb_str_truncate(&line, 0);
		before += put_character(&line, c, script[at]);
		while (before > WINDOW_BEFORE && first < at) {
			size_t skipped = decode(script, first, end, &c);

			prb_str_truncate(&line, 0);
			before -= put_character(&line, c, script[first]);
			first += skipped;
		}
	}
	if (first > start) {
		prb_str_puts(s, "…");
		column++;
	}
	caret = column;
	for (at = first; at < end && column < WINDOW; at += bytes) {
		size_t width;

		bytes = decode(script, at, end, &c);
		width = put_character(s, c, script[at]);
		if (at + bytes <= offset)
			caret += width;
		column += width;
	}
	if (at < end)
		prb_str_puts(s, "…");
	return caret;
}

void prb_script_point(struct prb_str *s, const char *script, size_t length, size_t offset)
{
	size_t start, end, caret;

	offset = PRB_MIN(offset, length);
	start = end = line_start(script, offset);
	while (end < length && script[end] != '\n')
		end++;
	if (end > start && script[end - 1] == '\r')
		end--;
	prb_str_puts(s, "  ");
	caret = put_line(s, script, start, end, PRB_MIN(offset, end));
	prb_str_puts(s, "\n  ");
	prb_text_spaces(s, caret);
	prb_str_putc(s, '^');
}

struct prb_error *prb_script_error(struct prb_error *err, const char *script, size_t length,
				   size_t offset)
{
	struct prb_script_position position = prb_script_position(script, length, offset);
	const char *feed = length ? memchr(script, '\n', length) : NULL;
	prb_auto_str struct prb_str hint = {};

	prb_script_point(&hint, script, length, offset);
	if (err && err->hint) {
		prb_str_putc(&hint, '\n');
		prb_str_puts(&hint, err->hint);
	}
	/* A line feed at the end of the only line makes no second one. */
	if (feed && feed != script + length - 1)
		err = prb_error_prefix(err, "line %zu, column %zu", position.line, position.column);
	return hint.failed ? err : prb_error_hint(err, "%s", prb_str_text(&hint));
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/text/source_lines.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

enum { MAX_LINES = 5, TAB = 8 };

/** The bytes [from, to) of a line that belong to the expression. */
struct span {
	size_t from, to;
};

static size_t line_length(const char *text)
{
	return strcspn(text, "\n");
}

static size_t indentation(const char *line, size_t length)
{
	size_t n = strspn(line, " \t\f");

	return n < length ? n : length;
}

/** The indentation common to all lines, as the same bytes. */
static size_t common_indentation(const char *text)
{
	size_t common = SIZE_MAX;
	const char *first = text;

	for (unsigned n = 0; *text && n < MAX_LINES; n++) {
		size_t length = line_length(text), own = indentation(text, length);

		if (own < length) {
			own = PRB_MIN(own, common);
			for (common = 0; common < own && text[common] == first[common];)
				common++;
		}
		text += length + (text[length] == '\n');
	}
	return common == SIZE_MAX ? 0 : common;
}

/** The bytes of line number @p index of the source that the expression covers. */
static struct span covered(const struct prb_dump_frame *frame, int32_t index, const char *line,
			   size_t length)
{
	int32_t last = frame->end_line > frame->line ? frame->end_line - frame->line : 0;
	struct span span = {indentation(line, length), length};

	if (frame->col < 0 || frame->end_col < 0 || index > last)
		return (struct span){};
	if (index == 0)
		span.from = (size_t)frame->col;
	if (index == last)
		span.to = (size_t)frame->end_col;
	span.to = PRB_MIN(span.to, length);
	return span;
}

/**
 * Appends one line to @p text, tabs as spaces, and the marks to @p marks. Columns of the expression
 * are bytes; marks are as wide as the characters above them.
 */
static void put_line(struct prb_str *text, struct prb_str *marks, const char *line, size_t length,
		     size_t skip, struct span span)
{
	size_t column = 0, marked_to = 0;

	for (size_t i = skip; i < length;) {
		uint32_t c;
		size_t start = text->length, bytes = prb_text_decode(line + i, &c), width;

		if (c == '\t') {
			width = TAB - column % TAB;
			prb_text_spaces(text, width);
		} else {
			width = prb_text_put(text, c, (unsigned char)line[i]);
		}
		if (text->failed || text->length == start)
			return;
		if (i >= span.from && i < span.to && width) {
			prb_text_spaces(marks, column - marked_to);
			for (size_t n = 0; n < width; n++)
				prb_str_putc(marks, '^');
			marked_to = column + width;
		}
		column += width;
		i += bytes;
	}
}

static int32_t count_lines(const char *text)
{
	int32_t n = 0;

	for (; *text && n < INT32_MAX; n++) {
		text += line_length(text);
		text += *text == '\n';
	}
	return n;
}

void prb_render_source(struct prb_str *s, const struct prb_dump_frame *frame, size_t indent)
{
	const char *line = frame->source ? frame->source : "";
	size_t skip = common_indentation(line);
	int32_t lines = count_lines(line);
	/* Replacing a single line by a note would gain nothing. */
	int32_t shown = lines <= MAX_LINES + 1 ? lines : MAX_LINES;

	for (int32_t i = 0; i < shown; i++) {
		prb_auto_str struct prb_str text = {}, marks = {};
		size_t length = line_length(line);

		put_line(&text, &marks, line, length, PRB_MIN(skip, length),
			 covered(frame, i, line, length));
		prb_text_spaces(s, indent);
		prb_str_puts(s, prb_str_text(&text));
		prb_str_putc(s, '\n');
		if (marks.length) {
			prb_text_spaces(s, indent);
			prb_str_puts(s, prb_str_text(&marks));
			prb_str_putc(s, '\n');
		}
		line += length + (line[length] == '\n');
	}
	if (shown < lines) {
		prb_text_spaces(s, indent);
		prb_str_printf(s, "… (%d more lines)\n", lines - shown);
	}
}

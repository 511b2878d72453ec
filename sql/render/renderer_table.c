/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Aligned columns, for people. The first page of rows is kept, and widths are chosen from it; what
 * comes later is written at once. On a terminal the columns are made to fit: wide texts are cut
 * first, which shows as an ellipsis, then columns on the right are left out, which shows as a
 * column of ellipses. Otherwise nothing is cut, and a long cell pushes its row to the right.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"
#include "sql/render/renderer_private.h"

enum {
	PAGE_ROWS = 1000,
	PAGE_BYTES = 1024 * 1024,
	GAP = 2,
	/* Texts are cut down to this before columns are left out. */
	MIN_TEXT = 10,
	MIN_HEADER = 6,
	/* No column makes all rows wider than this because of one long cell. */
	MAX_PADDED = 120,
};

struct cell {
	size_t at, length; /**< in the state's text */
	size_t width;	   /**< columns; more than any limit if it is cut already */
	bool null, number, cut;
};

struct column {
	size_t header; /**< width of its name */
	size_t widest; /**< of its cells on the first page */
	size_t width;  /**< that it is given */
	size_t limit;  /**< what is wider is cut */
	bool numbers, texts;
};

struct table_state {
	struct column *columns;
	struct prb_str text;
	PRB_VEC(struct cell) cells; /**< of rows not written yet; the first row is the header */
	size_t visible;		    /**< columns that are shown */
	bool laid_out, cut;
};

/** At most six digits, but all in front of the point: what a person takes in, times included. */
static void put_real(struct prb_str *s, double value)
{
	double size = fabs(value);
	char text[64];

	if (!isfinite(value) || size >= 1e15 || (size < 1e-4 && size > 0)) {
		snprintf(text, sizeof(text), isfinite(value) ? "%.6g" : "%g", value);
		prb_str_puts(s, text);
		return;
	}
	/* Seconds since the epoch are worth their milliseconds. */
	int digits = size >= 1e8 ? 3 : size >= 1e5 ? 1 : 5 - (int)floor(log10(fmax(size, 1e-4)));
	int length = snprintf(text, sizeof(text), "%.*f", digits, value);

	while (length > 2 && text[length - 1] == '0' && text[length - 2] != '.')
		length--;
	prb_str_append(s, text, (size_t)length);
}

/** Appends text up to @p limit columns, escaped; false if there is more of it. */
static bool put_text(struct prb_str *s, const char *text, size_t length, size_t limit,
		     size_t *width)
{
	const char *end = text + length;

	while (text < end) {
		size_t plain = 0, room = limit - *width;
		uint32_t c;

		while (plain < room && text + plain < end && text[plain] >= ' ' &&
		       text[plain] < 0x7f)
			plain++;
		prb_str_append(s, text, plain);
		*width += plain;
		text += plain;
		if (text == end)
			break;

		size_t before = s->length, used = prb_text_decode(text, &c);
		size_t takes = prb_text_put(s, c, (unsigned char)*text);
		if (takes > limit - *width) {
			if (!s->failed)
				prb_str_truncate(s, before);
			return false;
		}
		*width += takes;
		text += used;
	}
	return true;
}

static void put_blob(struct prb_str *s, const struct prb_value *value, size_t limit, bool *whole)
{
	size_t shown = PRB_MIN(value->length, limit / 2 + 1);

	prb_str_puts(s, "x'");
	prb_renderer_hex(s, value->text, shown);
	prb_str_putc(s, '\'');
	*whole = shown == value->length;
}

static struct cell make_cell(struct prb_renderer *renderer, const struct prb_value *value)
{
	struct table_state *state = renderer->state;
	size_t limit = renderer->look.width ? renderer->look.width : SIZE_MAX;
	struct cell cell = {.at = state->text.length, .null = value->kind == PRB_VALUE_NULL};
	bool whole = true;

	switch (value->kind) {
	case PRB_VALUE_NULL:
		prb_str_append(&state->text, "NULL", 4);
		break;
	case PRB_VALUE_INTEGER:
		prb_renderer_integer(&state->text, value->integer);
		cell.number = true;
		break;
	case PRB_VALUE_REAL:
		put_real(&state->text, value->real);
		cell.number = true;
		break;
	case PRB_VALUE_TEXT:
		whole = put_text(&state->text, value->length ? value->text : "", value->length,
				 limit, &cell.width);
		break;
	case PRB_VALUE_BLOB:
		put_blob(&state->text, value, limit, &whole);
		break;
	}
	cell.length = state->text.length - cell.at;
	if (value->kind != PRB_VALUE_TEXT)
		cell.width = cell.length;
	cell.cut = !whole;
	return cell;
}

static struct prb_error *keep_row(struct prb_renderer *renderer, const struct prb_value *values)
{
	struct table_state *state = renderer->state;

	if (!prb_vec_reserve(&state->cells, renderer->columns))
		return prb_error_nomem();
	for (size_t i = 0; i < renderer->columns; i++)
		state->cells.items[state->cells.count++] = make_cell(renderer, &values[i]);
	return state->text.failed ? prb_error_nomem() : NULL;
}

/* Widths */

static void measure(struct prb_renderer *renderer)
{
	struct table_state *state = renderer->state;

	for (size_t i = 0; i < state->cells.count; i++) {
		const struct cell *cell = &state->cells.items[i];
		struct column *column = &state->columns[i % renderer->columns];

		if (i < renderer->columns) {
			column->header = cell->width + cell->cut;
			continue;
		}
		column->widest = PRB_MAX(column->widest, cell->width + cell->cut);
		column->numbers |= cell->number;
		column->texts |= !cell->number && !cell->null;
	}
}

static bool is_numeric(const struct column *column)
{
	return column->numbers && !column->texts;
}

static size_t natural_width(const struct column *column)
{
	return PRB_MAX(column->header, column->widest);
}

/** Numbers are not cut, as what is left of one looks like another. */
static size_t least_width(const struct column *column)
{
	if (is_numeric(column))
		return PRB_MAX(column->widest, PRB_MIN(column->header, (size_t)MIN_HEADER));
	return PRB_MIN(natural_width(column), (size_t)MIN_TEXT);
}

/** Width of the first @p count columns and what is between them, if no text takes over @p cap. */
static size_t total_width(const struct table_state *state, size_t count, size_t cap)
{
	size_t total = (count - 1) * GAP;

	for (size_t i = 0; i < count; i++) {
		const struct column *c = &state->columns[i];

		total += PRB_MAX(least_width(c), PRB_MIN(natural_width(c), cap));
	}
	return total;
}

/** As many columns as fit, from the left, texts cut to one width where they need it. */
static void fit(struct prb_renderer *renderer)
{
	struct table_state *state = renderer->state;
	size_t room = renderer->look.width, cap;

	if (total_width(state, state->visible, 0) > room) {
		room -= PRB_MIN(room, (size_t)GAP + 1);
		while (state->visible > 1 && total_width(state, state->visible, 0) > room)
			state->visible--;
	}
	/* Its least width is within the room, so this ends. */
	for (cap = room; cap > 0 && total_width(state, state->visible, cap) > room;)
		cap--;
	for (size_t i = 0; i < state->visible; i++) {
		struct column *c = &state->columns[i];

		c->width = PRB_MAX(least_width(c), PRB_MIN(natural_width(c), cap));
		c->limit = c->width = PRB_MIN(c->width, PRB_MAX(room, (size_t)1));
	}
	/* The last column gets the remaining room, for wider rows of later pages. */
	if (state->visible == renderer->columns)
		state->columns[state->visible - 1].limit +=
			room - PRB_MIN(room, total_width(state, state->visible, cap));
}

/* Writing */

/** Writes what fits of a cell; gives its width. */
static size_t put_cell_text(struct prb_renderer *renderer, const struct cell *cell, size_t limit)
{
	struct table_state *state = renderer->state;
	const char *text = prb_str_text(&state->text) + cell->at;
	size_t width = 0;

	if (!cell->cut && cell->width <= limit) {
		prb_str_append(&renderer->out, text, cell->length);
		return cell->width;
	}
	/* The kept text is escaped already. */
	put_text(&renderer->out, text, cell->length, limit - 1, &width);
	prb_str_puts(&renderer->out, "…");
	state->cut = true;
	return width + 1;
}

/** Writes a cell; the last one of a line is not followed by spaces. */
static void put_cell(struct prb_renderer *renderer, const struct cell *cell,
		     const struct column *column, bool last)
{
	size_t limit = cell->number ? SIZE_MAX : column->limit;
	bool right = is_numeric(column), dim = cell->null && renderer->look.colour;

	if (right && cell->width < column->width)
		prb_text_spaces(&renderer->out, column->width - cell->width);
	if (dim)
		prb_str_puts(&renderer->out, "\x1b[2m");

	size_t width = put_cell_text(renderer, cell, limit);
	if (dim)
		prb_str_puts(&renderer->out, "\x1b[0m");
	if (!right && !last && width < column->width)
		prb_text_spaces(&renderer->out, column->width - width);
}

static void put_row(struct prb_renderer *renderer, const struct cell *cells)
{
	struct table_state *state = renderer->state;
	bool all = state->visible == renderer->columns;

	for (size_t i = 0; i < state->visible; i++) {
		if (i)
			prb_text_spaces(&renderer->out, GAP);
		put_cell(renderer, &cells[i], &state->columns[i], all && i + 1 == state->visible);
	}
	prb_str_puts(&renderer->out, all ? "\n" : "  …\n");
}

static void put_rule(struct prb_renderer *renderer)
{
	struct table_state *state = renderer->state;

	for (size_t i = 0; i < state->visible; i++) {
		if (i)
			prb_text_spaces(&renderer->out, GAP);
		for (size_t n = 0; n < state->columns[i].width; n++)
			prb_str_puts(&renderer->out, "─");
	}
	prb_str_puts(&renderer->out, state->visible == renderer->columns ? "\n" : "  ─\n");
}

/** Writes what is kept. */
static struct prb_error *write_rows(struct prb_renderer *renderer)
{
	struct table_state *state = renderer->state;

	for (size_t i = 0; i < state->cells.count; i += renderer->columns) {
		put_row(renderer, &state->cells.items[i]);
		if (!state->laid_out)
			put_rule(renderer);
		state->laid_out = true;
	}
	state->cells.count = 0;
	prb_str_truncate(&state->text, 0);
	return NULL;
}

static struct prb_error *lay_out(struct prb_renderer *renderer)
{
	struct table_state *state = renderer->state;

	measure(renderer);
	if (renderer->look.width) {
		fit(renderer);
	} else {
		for (size_t i = 0; i < renderer->columns; i++) {
			struct column *c = &state->columns[i];

			c->width = PRB_MIN(natural_width(c), (size_t)MAX_PADDED);
			c->limit = SIZE_MAX;
		}
	}
	return write_rows(renderer);
}

static void forget(struct prb_renderer *renderer)
{
	struct table_state *state = renderer->state;

	free(state->columns);
	prb_vec_free(&state->cells);
	prb_str_deinit(&state->text);
	*state = (struct table_state){};
}

static struct prb_error *begin(struct prb_renderer *renderer)
{
	struct table_state *state = renderer->state;
	prb_auto_free struct prb_value *names = calloc(renderer->columns, sizeof(*names));

	forget(renderer);
	state->visible = renderer->columns;
	state->columns = calloc(renderer->columns, sizeof(*state->columns));
	if (!names || !state->columns)
		return prb_error_nomem();
	for (size_t i = 0; i < renderer->columns; i++)
		names[i] = (struct prb_value){.kind = PRB_VALUE_TEXT,
					      .text = renderer->names[i],
					      .length = strlen(renderer->names[i])};
	return keep_row(renderer, names);
}

static struct prb_error *row(struct prb_renderer *renderer, const struct prb_value *values)
{
	struct table_state *state = renderer->state;

	PRB_TRY(keep_row(renderer, values));
	if (state->laid_out)
		return write_rows(renderer);
	if (renderer->rows < PAGE_ROWS && state->text.length < PAGE_BYTES)
		return NULL;
	return lay_out(renderer);
}

static struct prb_error *end(struct prb_renderer *renderer)
{
	const struct table_state *state = renderer->state;

	return state->laid_out ? NULL : lay_out(renderer);
}

static void left_out(const struct prb_renderer *renderer, struct prb_str *ret)
{
	const struct table_state *state = renderer->state;
	size_t hidden = renderer->columns - state->visible;

	if (hidden) {
		prb_str_printf(ret, "%zu column%s not fit: ", hidden,
			       hidden == 1 ? " does" : "s do");
		for (size_t i = state->visible; i < renderer->columns; i++) {
			prb_str_puts(ret, i == state->visible ? "" : ", ");
			prb_text_escape(ret, renderer->names[i]);
		}
	}
	if (state->cut)
		prb_str_printf(ret, "%svalues that end in … are cut", hidden ? "; " : "");
}

const struct prb_renderer_ops prb_renderer_table = {
	.state_size = sizeof(struct table_state),
	.begin = begin,
	.row = row,
	.end = end,
	.left_out = left_out,
	.deinit = forget,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/page.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/engine/session_private.h"

static bool column_used(uint64_t used, unsigned column)
{
	return used >> PRB_MIN(column, 63) & 1;
}

struct prb_error *prb_page_create(unsigned column_count, uint64_t used, struct prb_page **ret)
{
	struct prb_page *page = calloc(1, sizeof(*page) + column_count * sizeof(page->slots[0]));

	if (!page)
		return prb_error_nomem();
	page->references = 1;
	page->column_count = column_count;
	for (unsigned i = 0; i < column_count; i++)
		page->slots[i] = column_used(used, i) ? (int16_t)page->stride++ : -1;
	*ret = page;
	return NULL;
}

struct prb_page *prb_page_reference(struct prb_page *page)
{
	page->references++;
	return page;
}

void prb_page_release(struct prb_page *page)
{
	if (!page || --page->references)
		return;
	prb_vec_free(&page->cells);
	prb_str_deinit(&page->text);
	free(page);
}

void prb_page_clear(struct prb_page *page)
{
	page->rows = 0;
	page->cells.count = 0;
	prb_str_truncate(&page->text, 0);
}

void prb_cell_result(const struct prb_cell *cell, const char *texts, sqlite3_context *context)
{
	switch (cell->kind) {
	case PRB_CELL_NULL:
		break;
	case PRB_CELL_INTEGER:
		sqlite3_result_int64(context, cell->integer);
		break;
	case PRB_CELL_REAL:
		sqlite3_result_double(context, cell->real);
		break;
	case PRB_CELL_STATIC:
		/*
		 * Length -1: with a length SQLite would not know that the text is terminated, and
		 * would copy it.
		 */
		sqlite3_result_text(context, cell->text, -1, SQLITE_STATIC);
		break;
	case PRB_CELL_TEXT:
		sqlite3_result_text(context, texts + cell->offset, (int)cell->length,
				    SQLITE_TRANSIENT);
		break;
	case PRB_CELL_KEPT:
		sqlite3_result_text(context, cell->text, (int)cell->length, SQLITE_TRANSIENT);
		break;
	}
}

void prb_page_result(const struct prb_page *page, size_t row, unsigned column,
		     sqlite3_context *context)
{
	int slot = page->slots[column];

	if (slot >= 0)
		prb_cell_result(&page->cells.items[row * page->stride + (unsigned)slot],
				prb_str_text(&page->text), context);
}

struct prb_error *prb_scan_row(struct prb_scan *scan)
{
	struct prb_page *page = scan->page;

	PRB_TRY(prb_session_check(scan->session));
	if (page->text.failed || !prb_vec_reserve(&page->cells, page->stride))
		return prb_error_nomem();
	if (page->stride)
		memset(page->cells.items + page->cells.count, 0,
		       page->stride * sizeof(*page->cells.items));
	page->cells.count += page->stride;
	page->rows++;
	return NULL;
}

struct prb_error *prb_scan_check(struct prb_scan *scan)
{
	return prb_session_check(scan->session);
}

void prb_scan_end(struct prb_scan *scan)
{
	if (scan->end && scan->state)
		scan->end(scan->state);
	else
		free(scan->state);
	scan->state = NULL;
}

bool prb_scan_full(const struct prb_scan *scan)
{
	return scan->page->rows >= PRB_PAGE_ROWS || scan->page->text.length >= PRB_PAGE_TEXT;
}

bool prb_scan_wants(const struct prb_scan *scan, unsigned column)
{
	return scan->page->slots[column] >= 0;
}

/** The cell of the present row, NULL if its column is not used. */
static struct prb_cell *cell(struct prb_scan *scan, unsigned column)
{
	struct prb_page *page = scan->page;
	int slot = page->slots[column];

	return slot < 0 ? NULL
			: &page->cells.items[page->cells.count - page->stride + (unsigned)slot];
}

void prb_put_integer(struct prb_scan *scan, unsigned column, int64_t value)
{
	struct prb_cell *c = cell(scan, column);

	if (c)
		*c = (struct prb_cell){.kind = PRB_CELL_INTEGER, .integer = value};
}

void prb_put_natural(struct prb_scan *scan, unsigned column, int64_t value)
{
	if (value >= 0)
		prb_put_integer(scan, column, value);
}

void prb_put_real(struct prb_scan *scan, unsigned column, double value)
{
	struct prb_cell *c = cell(scan, column);

	if (c && !isnan(value))
		*c = (struct prb_cell){.kind = PRB_CELL_REAL, .real = value};
}

/** Longest text in bytes. Tables about the tables themselves are not cut. */
static size_t text_max(const struct prb_scan *scan)
{
	bool ours = !strcmp(scan->table->schema, "information_schema");

	return ours ? PRB_TEXT_MAX : scan->session->text_max;
}

/** Cuts a text that is too long, between characters, and marks the cut. */
static void cut(struct prb_scan *scan, size_t offset)
{
	struct prb_str *s = &scan->page->text;
	size_t length = text_max(scan);

	if (s->length - offset <= length)
		return;
	while (length && (s->data[offset + length] & 0xc0) == 0x80)
		length--;
	prb_str_truncate(s, offset + length);
	prb_str_puts(s, "…");
}

static void set_text(struct prb_scan *scan, struct prb_cell *cell, size_t offset)
{
	cut(scan, offset);
	*cell = (struct prb_cell){.kind = PRB_CELL_TEXT,
				  .length = (uint32_t)(scan->page->text.length - offset),
				  .offset = offset};
}

void prb_put_bytes(struct prb_scan *scan, unsigned column, const char *text, size_t length)
{
	struct prb_cell *c = cell(scan, column);
	size_t offset = scan->page->text.length;

	if (!c)
		return;
	/* Appends one byte more than allowed, so that cut() sees the excess. */
	prb_str_append(&scan->page->text, text, PRB_MIN(length, text_max(scan) + 1));
	set_text(scan, c, offset);
}

void prb_put_text(struct prb_scan *scan, unsigned column, const char *text)
{
	if (text)
		prb_put_bytes(scan, column, text, strlen(text));
}

void prb_put_static(struct prb_scan *scan, unsigned column, const char *text)
{
	struct prb_cell *c = cell(scan, column);
	size_t length = c && text ? strnlen(text, text_max(scan) + 1) : 0;

	if (!c || !text)
		return;
	if (length > text_max(scan))
		prb_put_bytes(scan, column, text, length);
	else
		*c = (struct prb_cell){.kind = PRB_CELL_STATIC, .text = text};
}

void prb_put_format(struct prb_scan *scan, unsigned column, const char *format, ...)
{
	struct prb_cell *c = cell(scan, column);
	size_t offset = scan->page->text.length;
	va_list args;

	if (!c)
		return;
	va_start(args, format);
	prb_str_vprintf(&scan->page->text, format, args);
	va_end(args);
	set_text(scan, c, offset);
}

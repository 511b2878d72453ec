/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A page of rows: a scan appends them, SQLite reads them.
 *
 * Only columns that the statement uses take room. Pages are reference-counted: the inner loops of a
 * join reread a page that holds a whole small table.
 *
 * Internal to sql/engine/. Threading: one thread at a time.
 */
#ifndef PRB_SQL_ENGINE_PAGE_H
#define PRB_SQL_ENGINE_PAGE_H

#include <sqlite3.h>

#include "base/str.h"
#include "base/vec.h"
#include "sql/spec/table.h"

/*
 * Rows or bytes of text in a full page: few enough for a processor's cache, enough to amortise the
 * cost of a page.
 */
enum { PRB_PAGE_ROWS = 256, PRB_PAGE_TEXT = 256 * 1024 };

enum prb_cell_kind {
	PRB_CELL_NULL,
	PRB_CELL_INTEGER,
	PRB_CELL_REAL,
	PRB_CELL_STATIC, /**< text that outlives the statement's rows */
	PRB_CELL_TEXT,	 /**< text in the page */
	PRB_CELL_KEPT,	 /**< text elsewhere that outlives the row */
};

struct prb_cell {
	enum prb_cell_kind kind;
	uint32_t length; /**< of text in the page or elsewhere, bytes */
	union {
		int64_t integer;
		double real;
		const char *text;
		size_t offset; /**< in `text` of the page */
	};
};

struct prb_page {
	unsigned references;
	unsigned stride;       /**< cells of a row */
	unsigned column_count; /**< of the table */
	size_t rows;
	PRB_VEC(struct prb_cell) cells;
	struct prb_str text;
	int16_t slots[]; /**< a column's cell in a row; -1: not used */
};

/** @p used as in struct prb_scan. */
struct prb_error *prb_page_create(unsigned column_count, uint64_t used,
				  struct prb_page **ret) PRB_MUST_CHECK;
struct prb_page *prb_page_reference(struct prb_page *page);
/** Drops one reference; NULL is allowed. */
void prb_page_release(struct prb_page *page);

/** Removes the rows. */
void prb_page_clear(struct prb_page *page);

/** Frees the scan's state. */
void prb_scan_end(struct prb_scan *scan);

/** Hands a cell to SQLite. @p texts are those of its page. */
void prb_cell_result(const struct prb_cell *cell, const char *texts, sqlite3_context *context);
/** The same of a cell of a row. */
void prb_page_result(const struct prb_page *page, size_t row, unsigned column,
		     sqlite3_context *context);

#endif

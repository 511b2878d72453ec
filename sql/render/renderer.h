/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Formats results: a renderer takes rows one by one and writes text.
 *
 *     prb_renderer_create(prb_renderer_find("csv"), &(struct prb_renderer_look){}, sink, file, &r);
 *     prb_renderer_begin(r, columns, count);            // once for each result
 *     prb_renderer_row(r, values);                      // any number
 *     prb_renderer_end(r);
 *     prb_renderer_destroy(r);
 *
 * Rules of all formats, whatever bytes a target has:
 *
 * - The output is UTF-8. Bytes that are not become \udcXX, as six characters of text, in the
 *   formats for programs, and \xXX in tables.
 * - Integers are exact. Reals are a short text that reads back as the same number, but for
 *   tables, which round to six digits.
 * - Blobs are hexadecimal text.
 * - Where the output is a terminal, no control character reaches it.
 *
 * Memory is bounded: rows are handed on as they come; a table keeps the first page of them, which
 * its layout is made from.
 *
 * Threading: one thread at a time. Errors: of the sink, and PRB_ERROR_NOMEM.
 */
#ifndef PRB_SQL_RENDER_RENDERER_H
#define PRB_SQL_RENDER_RENDERER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "sql/engine/session.h"

struct prb_renderer;
struct prb_renderer_ops;

struct prb_renderer_format {
	const char *name; /**< NULL ends the array */
	const char *doc;  /**< one line, without full stop */
	/** Several results in one output have an empty line between them. */
	bool apart;
	const struct prb_renderer_ops *ops;
};

/** The formats, the usual one first. */
extern const struct prb_renderer_format prb_renderer_formats[];

/** A format by its name, or NULL. */
const struct prb_renderer_format *prb_renderer_find(const char *name);

/** The device that shows the output. */
struct prb_renderer_look {
	bool terminal; /**< escape what it would obey */
	bool colour;
	size_t width; /**< columns; 0: as many as are needed */
};

/** Takes over nothing: @p text is valid during the call. */
typedef struct prb_error *prb_renderer_sink(void *context, const char *text, size_t length);

struct prb_error *prb_renderer_create(const struct prb_renderer_format *format,
				      const struct prb_renderer_look *look, prb_renderer_sink *sink,
				      void *context, struct prb_renderer **ret) PRB_MUST_CHECK;
void prb_renderer_destroy(struct prb_renderer *renderer);

static inline void prb_renderer_guard(struct prb_renderer **renderer)
{
	prb_renderer_destroy(*renderer);
}
#define prb_auto_renderer __attribute__((cleanup(prb_renderer_guard)))

struct prb_renderer_column {
	const char *name; /**< copied */
};

/** Begins a result. Its columns are one at least. */
struct prb_error *prb_renderer_begin(struct prb_renderer *renderer,
				     const struct prb_renderer_column *columns,
				     size_t count) PRB_MUST_CHECK;

/** A row: a value for each column. A NUL follows the bytes of texts. */
struct prb_error *prb_renderer_row(struct prb_renderer *renderer,
				   const struct prb_value *values) PRB_MUST_CHECK;

/** As above, for the result of @p statement: its columns, and the row that it is at. */
struct prb_error *prb_renderer_begin_statement(struct prb_renderer *renderer,
					       struct prb_statement *statement) PRB_MUST_CHECK;
struct prb_error *prb_renderer_row_statement(struct prb_renderer *renderer,
					     struct prb_statement *statement) PRB_MUST_CHECK;

/** Ends the result, and hands all of it on. Output that stopped early is well-formed, too. */
struct prb_error *prb_renderer_end(struct prb_renderer *renderer) PRB_MUST_CHECK;

/** Rows of the present or last result. */
uint64_t prb_renderer_rows(const struct prb_renderer *renderer);

/**
 * Appends what a table had to leave out of the last result to fit its width ("3 columns do not
 * fit: a, b, c"); nothing if it shows all.
 */
void prb_renderer_left_out(const struct prb_renderer *renderer, struct prb_str *ret);

#endif

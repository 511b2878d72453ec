/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: results as text. */
#include <string.h>

#include "base/cleanup.h"
#include "lib/library_private.h"
#include "sql/render/renderer.h"

struct printer {
	struct prb_session *session;
	const struct prb_renderer_format *format;
	struct prb_renderer_look look;
	probing_text_handler *handler;
	void *context;
	bool ended;	/* the handler wants no more */
	size_t results; /* printed so far */
};

static struct prb_error *hand_on(void *context, const char *text, size_t length)
{
	struct printer *printer = context;

	if (!printer->ended && printer->handler(printer->context, text, length))
		printer->ended = true;
	return NULL;
}

static struct prb_error *print_rows(struct printer *printer, struct prb_statement *statement,
				    struct prb_renderer *renderer, bool row)
{
	while (row && !printer->ended) {
		PRB_TRY(prb_renderer_row_statement(renderer, statement));
		PRB_TRY(prb_statement_next(statement, &row));
	}
	return NULL;
}

/** "12 rows; 3 columns do not fit: a, b, c", below a table that is not whole. */
static struct prb_error *tell_left_out(struct printer *printer, const struct prb_renderer *renderer)
{
	prb_auto_str struct prb_str left_out = {}, text = {};
	unsigned long long rows = prb_renderer_rows(renderer);

	prb_renderer_left_out(renderer, &left_out);
	if (!left_out.length)
		return NULL;
	prb_str_printf(&text, "%llu row%s; %s\n", rows, rows == 1 ? "" : "s",
		       prb_str_text(&left_out));
	if (left_out.failed || text.failed)
		return prb_error_nomem();
	return hand_on(printer, prb_str_text(&text), text.length);
}

static struct prb_error *print(struct printer *printer, struct prb_statement *statement)
{
	prb_auto_renderer struct prb_renderer *renderer = NULL;
	bool row;

	/* Nothing is shown of a statement that fails at once. */
	PRB_TRY(prb_statement_next(statement, &row));
	if (!prb_statement_columns(statement))
		return NULL;
	PRB_TRY(prb_renderer_create(printer->format, &printer->look, hand_on, printer, &renderer));
	if (printer->results++ && printer->format->apart)
		PRB_TRY(hand_on(printer, "\n", 1));
	PRB_TRY(prb_renderer_begin_statement(renderer, statement));

	struct prb_error *err = print_rows(printer, statement, renderer, row);
	struct prb_error *ending = prb_renderer_end(renderer);
	if (err) {
		prb_error_destroy(ending);
		return err;
	}
	PRB_TRY(ending);
	return tell_left_out(printer, renderer);
}

static struct prb_error *print_script(struct printer *printer, const char *sql)
{
	size_t length = strlen(sql), at = 0;

	while (!printer->ended) {
		prb_auto_statement struct prb_statement *statement = NULL;

		PRB_TRY(prb_session_prepare(printer->session, sql, length, &at, &statement));
		if (!statement)
			break;
		PRB_TRY(print(printer, statement));
	}
	return NULL;
}

struct probing_error *probing_print(struct probing *p, const char *sql, const char *format,
				    unsigned look, unsigned width, probing_text_handler *handler,
				    void *context)
{
	struct printer printer = {
		.session = p->session,
		.format = prb_renderer_find(format),
		.look = {.terminal = look & PROBING_TERMINAL,
			 .colour = look & PROBING_COLOUR,
			 .width = width},
		.handler = handler,
		.context = context,
	};

	if (!printer.format)
		return prb_public_error(
			prb_error_create(PRB_ERROR_USAGE, "there is no format '%.100s'", format));
	return prb_public_error(print_script(&printer, sql));
}

const char *probing_format(unsigned index)
{
	for (unsigned i = 0; prb_renderer_formats[i].name; i++)
		if (i == index)
			return prb_renderer_formats[i].name;
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Running the statements of a script, and showing what they give. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "command/interrupt.h"
#include "command/output.h"
#include "cli/commands/query/query.h"
#include "command/term.h"
#include "base/cleanup.h"

static struct prb_error *sink(void *context, const char *text, size_t length)
{
	struct prb_query *query = context;

	if (query->capture) {
		prb_str_append(query->capture, text, length);
		return query->capture->failed ? prb_error_nomem() : NULL;
	}
	return prb_output_bytes(text, length);
}

struct prb_error *prb_query_renderer(struct prb_query *query, struct prb_renderer **ret)
{
	struct prb_renderer_look look = {};
	size_t rows;

	look.terminal = prb_term_size(stdout, &look.width, &rows);
	look.colour = prb_term_colour(stdout);
	if (query->wide)
		look.width = 0;
	return prb_renderer_create(query->format, &look, sink, query, ret);
}

/** Shows the rows from @p row, which says if there is a first one, on; *more: some are left. */
static struct prb_error *show_rows(struct prb_query *query, struct prb_statement *statement,
				   struct prb_renderer *renderer, bool row, bool *more)
{
	while (row) {
		if (query->rows && prb_renderer_rows(renderer) == query->rows) {
			*more = true;
			return NULL;
		}
		PRB_TRY(prb_renderer_row_statement(renderer, statement));
		PRB_TRY(prb_statement_next(statement, &row));
	}
	return NULL;
}

void prb_query_tell_rest(const struct prb_query *query, const struct prb_renderer *renderer,
			 bool more)
{
	prb_auto_str struct prb_str left_out = {}, text = {};
	uint64_t rows = prb_renderer_rows(renderer);
	bool people = prb_term_is(stdout) && prb_term_is(stderr) && query->format->apart;

	prb_renderer_left_out(renderer, &left_out);
	if (!more && !left_out.length && (!people || query->capture))
		return;
	prb_str_printf(&text, more ? "only the first %" PRIu64 " row%s" : "%" PRIu64 " row%s", rows,
		       rows == 1 ? "" : "s");
	if (more)
		prb_str_puts(&text, "; there are more (--limit)");
	if (left_out.length)
		prb_str_printf(&text, "; %s (--wide shows all)", prb_str_text(&left_out));
	prb_str_putc(&text, '\n');
	if (query->capture)
		prb_str_puts(query->capture, prb_str_text(&text));
	else
		fputs(prb_str_text(&text), stderr);
}

/** Runs a statement. Rows before an error, or before Ctrl-C, are shown too. */
static struct prb_error *run_statement(struct prb_query *query, struct prb_statement *statement)
{
	prb_auto_renderer struct prb_renderer *renderer = NULL;
	bool row, more = false;

	/* Nothing is shown of a statement that fails at once. */
	PRB_TRY(prb_statement_next(statement, &row));
	if (!prb_statement_columns(statement))
		return NULL;
	PRB_TRY(prb_query_renderer(query, &renderer));
	if (query->results++ && query->format->apart)
		PRB_TRY(sink(query, "\n", 1));
	PRB_TRY(prb_renderer_begin_statement(renderer, statement));

	struct prb_error *err = show_rows(query, statement, renderer, row, &more);
	struct prb_error *ending = prb_renderer_end(renderer);
	if (!ending && !query->capture)
		ending = prb_output_flush();
	if (err) {
		prb_error_destroy(ending);
		return err;
	}
	PRB_TRY(ending);
	prb_query_tell_rest(query, renderer, more);
	return NULL;
}

struct prb_error *prb_query_run(struct prb_query *query, const char *sql, size_t length)
{
	size_t number = 0, at = 0;

	prb_query_wait(query, sql, length);
	for (;;) {
		prb_auto_statement struct prb_statement *statement = NULL;
		struct prb_error *err;

		PRB_TRY(prb_session_prepare(query->session, sql, length, &at, &statement));
		if (!statement)
			break;
		number++;
		if (prb_interrupted())
			err = prb_error_create(PRB_ERROR_CANCELLED, "the query was cancelled");
		else
			err = run_statement(query, statement);
		if (err)
			return number > 1 ? prb_error_prefix(err, "statement %zu", number) : err;
	}
	if (!number)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "there is no query"),
				      "for example 'probing query \"SELECT 1\"'");
	return NULL;
}

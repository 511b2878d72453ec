/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/query/clickhouse.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "clickhouse/answer.h"
#include "clickhouse/server.h"
#include "clickhouse/translate.h"
#include "command/interrupt.h"

struct printing {
	struct prb_query *query;
	struct prb_renderer *renderer;
	struct prb_answer *answer;
	bool more; /* than --limit says */
};

static struct prb_error *begin(void *context, const char *const *names, size_t count)
{
	struct printing *p = context;
	prb_auto_free struct prb_renderer_column *columns = calloc(count, sizeof(*columns));

	if (!columns)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++)
		columns[i].name = names[i];
	PRB_TRY(prb_query_renderer(p->query, &p->renderer));
	return prb_renderer_begin(p->renderer, columns, count);
}

static struct prb_error *row(void *context, const struct prb_value *values)
{
	struct printing *p = context;

	if (p->query->rows && prb_renderer_rows(p->renderer) == p->query->rows) {
		p->more = true;
		return prb_error_create(PRB_ERROR_CANCELLED, "enough");
	}
	return prb_renderer_row(p->renderer, values);
}

static struct prb_error *take(void *context, const char *data, size_t length)
{
	struct printing *p = context;

	return prb_answer_take(p->answer, data, length);
}

static bool stop(void *context)
{
	(void)context;
	return prb_interrupted();
}

static struct prb_error *run(struct printing *p, struct prb_clickhouse *server,
			     const struct prb_str *sql, double timeout_s)
{
	struct prb_error *err, *ending = NULL;

	err = prb_clickhouse_select(server, prb_str_text(sql), timeout_s, take, p);
	if (p->more && prb_error_catch(&err, PRB_ERROR_CANCELLED))
		err = NULL;
	else if (!err)
		err = prb_answer_end(p->answer);
	/* Rows that came before an error are shown. */
	if (p->renderer)
		ending = prb_renderer_end(p->renderer);
	if (!err && !ending && p->renderer)
		prb_query_tell_rest(p->query, p->renderer, p->more);
	if (!err)
		return ending;
	prb_error_destroy(ending);
	if (server->code == PRB_CLICKHOUSE_UNKNOWN_TABLE)
		return prb_error_hint(err, "'SHOW TABLES' lists those that were sent: rows of "
					   "rings, profile.samples and probing.metrics");
	return err->hint ? err
			 : prb_error_hint(err, "the statement as ClickHouse got it: %s",
					  prb_str_text(sql));
}

struct prb_error *prb_query_clickhouse(struct prb_query *query, const char *url,
				       const struct prb_str *sql, double timeout_s)
{
	struct printing p = {.query = query};
	const struct prb_answer_handler handler = {begin, row, &p};
	prb_auto_str struct prb_str translated = {};
	struct prb_clickhouse server;
	struct prb_error *err;

	PRB_TRY(prb_clickhouse_open(url, NULL, &server));
	err = prb_clickhouse_translate(&server.url, prb_str_text(sql), sql->length, &translated);
	prb_str_puts(&translated, "FORMAT TabSeparatedWithNamesAndTypes");
	p.answer = calloc(1, sizeof(*p.answer));
	if (!err && (!p.answer || translated.failed))
		err = prb_error_nomem();
	if (!err) {
		p.answer->handler = &handler;
		server.stop = stop;
		prb_interrupt_catch(NULL);
		err = run(&p, &server, &translated, timeout_s);
		prb_interrupt_release();
	}
	prb_renderer_destroy(p.renderer);
	if (p.answer)
		prb_answer_deinit(p.answer);
	free(p.answer);
	prb_clickhouse_close(&server);
	return err;
}

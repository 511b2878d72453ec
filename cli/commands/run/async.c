/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the tasks of asyncio wait for, where a thread waits in an event loop. */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/run/report.h"
#include "sql/engine/session.h"

static const char STATEMENT[] =
	"SELECT coro, file, lineno, waits_for, count(*), count(*) OVER () FROM python.tasks "
	"WHERE state = 'pending' GROUP BY 1, 2, 3, 4 ORDER BY 5 LIMIT 6";

static bool has_loop(const struct prb_dump *dump)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;

	prb_vec_each (thread, &dump->threads)
		prb_vec_each (frame, &thread->frames)
			if (frame->func && !strcmp(frame->func, "_run_once"))
				return true;
	return false;
}

/** "  task        fetch client.py:31 waits for an Event   (3 tasks)" */
static void put_row(struct prb_str *s, struct prb_statement *row)
{
	const char *coro = prb_statement_text(row, 0, &(size_t){0});
	const char *file = prb_statement_text(row, 1, &(size_t){0});
	const char *slash = file ? strrchr(file, '/') : NULL;
	const char *waits = prb_statement_text(row, 3, &(size_t){0});

	prb_str_puts(s, "  task        ");
	prb_text_escape(s, coro ? coro : "?");
	if (file) {
		prb_str_putc(s, ' ');
		prb_text_escape(s, slash ? slash + 1 : file);
		prb_str_printf(s, ":%lld", (long long)prb_statement_integer(row, 2));
	}
	if (waits) {
		prb_str_puts(s, " waits for ");
		prb_text_escape(s, waits);
	}
	if (prb_statement_integer(row, 4) > 1)
		prb_str_printf(s, "   (%lld tasks)", (long long)prb_statement_integer(row, 4));
	prb_str_putc(s, '\n');
}

static struct prb_error *put_rows(struct prb_str *s, struct prb_session *session)
{
	prb_auto_statement struct prb_statement *statement = NULL;
	size_t at = 0, shown = 0;
	long long all = 0;
	bool row;

	PRB_TRY(prb_session_prepare(session, STATEMENT, strlen(STATEMENT), &at, &statement));
	for (;;) {
		PRB_TRY(prb_statement_next(statement, &row));
		if (!row)
			break;
		put_row(s, statement);
		all = prb_statement_integer(statement, 5);
		shown++;
	}
	if (all > (long long)shown)
		prb_str_printf(s, "  tasks       at %lld more places\n", all - (long long)shown);
	return NULL;
}

struct prb_error *prb_report_tasks(const struct prb_why_one *one, struct prb_str *ret)
{
	struct prb_session *session = NULL;
	struct prb_target *target = NULL;
	struct prb_error *err;

	if (!one->dump || !has_loop(one->dump))
		return NULL;
	PRB_TRY(prb_session_create(&session));
	err = prb_target_open_process(one->process.pid, &target);
	if (!err)
		err = prb_session_add_target(session, one->words, target);
	if (!err)
		err = put_rows(ret, session);
	prb_session_destroy(session);
	return prb_error_tolerate(err, NULL);
}

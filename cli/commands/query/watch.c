/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing query --watch`: the same query again and again, each time over a new instant. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "command/interrupt.h"
#include "command/output.h"
#include "cli/commands/query/query.h"
#include "command/term.h"
#include "base/cleanup.h"
#include "base/local_time.h"
#include "base/text.h"

#define CLEAR "\x1b[H\x1b[2J"

/** Appends @p length bytes on one line of at most @p columns, the rest as an ellipsis. */
static void put_cut(struct prb_str *s, const char *text, size_t length, size_t columns)
{
	prb_auto_str struct prb_str safe = {}, shown = {};

	for (size_t i = 0; i < length; i++)
		prb_str_putc(&safe, strchr("\n\t\r", text[i]) ? ' ' : text[i]);
	prb_text_escape(&shown, prb_str_text(&safe));
	prb_text_cut(s, prb_str_text(&shown), columns);
}

/** "12:30:01  4242  SELECT …". */
static void put_header(const struct prb_query *query, const char *sql, size_t length,
		       size_t columns, struct prb_str *s)
{
	prb_auto_str struct prb_str line = {};

	prb_str_puts(&line, prb_local_time(time(NULL), PRB_LOCAL_CLOCK).text);
	if (query->targets > 1)
		prb_str_printf(&line, "  %zu targets", query->targets);
	else if (query->target)
		prb_str_printf(&line, "  %s", query->target);
	prb_str_puts(&line, "  ");
	prb_str_append(&line, sql, length);
	put_cut(s, prb_str_text(&line), line.length, columns);
	prb_str_puts(s, "\n\n");
}

/** Writes a screen over the one before it, without clearing it first, which would flicker. */
static struct prb_error *draw(const struct prb_str *screen, size_t rows)
{
	prb_auto_str struct prb_str out = {};
	const char *p = prb_str_text(screen);
	size_t lines = 0, hidden = 0;

	for (const char *q = p; *q; q++)
		lines += *q == '\n';
	if (lines > rows - 1)
		hidden = lines - (rows - 2);
	prb_str_puts(&out, "\x1b[H");
	for (size_t n = 0; n < lines - hidden; n++) {
		size_t length = strcspn(p, "\n");

		prb_str_append(&out, p, length);
		prb_str_puts(&out, "\x1b[K\n");
		p += length + 1;
	}
	if (hidden)
		prb_str_printf(&out, "… %zu more line%s\x1b[K\n", hidden, hidden == 1 ? "" : "s");
	prb_str_puts(&out, "\x1b[J");
	return prb_output(&out);
}

static struct prb_error *show_screen(struct prb_query *query, const char *sql, size_t length)
{
	prb_auto_str struct prb_str screen = {};
	size_t columns, rows;

	if (!prb_term_size(stdout, &columns, &rows))
		return prb_query_run(query, sql, length);
	put_header(query, sql, length, columns, &screen);
	query->capture = &screen;
	query->results = 0;

	struct prb_error *err = prb_query_run(query, sql, length);
	query->capture = NULL;
	PRB_TRY(err);
	return screen.failed ? prb_error_nomem() : draw(&screen, rows < 4 ? 4 : rows);
}

/** Waits until @p next; false if the user ended it. */
static bool wait_until(const struct timespec *next)
{
	while (!prb_interrupted()) {
		int err = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);

		if (err != EINTR)
			break;
	}
	return !prb_interrupted();
}

/** A time from now on: a query that takes long does not run without a pause. */
static struct timespec in_seconds(double seconds)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_sec += (time_t)seconds;
	time.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	if (time.tv_nsec >= 1000000000) {
		time.tv_nsec -= 1000000000;
		time.tv_sec++;
	}
	return time;
}

struct prb_error *prb_query_watch(struct prb_query *query, const char *sql, size_t length,
				  double seconds)
{
	struct timespec next;
	size_t columns, rows;

	if (prb_term_size(stdout, &columns, &rows))
		PRB_TRY(prb_output(
			&(struct prb_str){.data = (char[]){CLEAR}, .length = strlen(CLEAR)}));
	do {
		struct prb_error *err = show_screen(query, sql, length);

		if (prb_interrupted() && prb_error_catch(&err, PRB_ERROR_CANCELLED))
			break;
		PRB_TRY(err);
		next = in_seconds(seconds);
	} while (wait_until(&next));
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of threads: what each used of a processor, and where it is. */
#include "cli/commands/top/top.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "profile/formats/format.h"
#include "profile/recording/wait_sums.h"

enum { WIDEST_NAME = 20, WIDEST_STATE = 22 };

struct row {
	uint32_t thread;
	int64_t cpu, wall, queue;
	const struct prb_run *last; /* NULL: it has no sample in the window */
};

static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? 1 : -1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

/* Appends what the thread does, or waits for. */
static void put_doing(const struct prb_recording *r, const struct prb_run *run, struct prb_str *s)
{
	prb_auto_str struct prb_str text = {};

	if (run->wait)
		prb_wait_text(r, run->wait, &text);
	else
		prb_str_puts(&text, prb_run_state_name(run->state));
	if (run->gil)
		prb_str_puts(&text, ", GIL");
	s->failed |= text.failed;
	prb_text_column(s, prb_str_text(&text), WIDEST_STATE);
}

static void put_row(const struct prb_recording *r, const struct row *row, struct prb_str *s)
{
	const struct prb_profile_thread *thread = &r->threads.items[row->thread];
	const struct prb_tree_function *f;

	prb_str_printf(s, "%7d  ", (int)thread->tid);
	prb_text_column(s, prb_profile_thread_name(thread), WIDEST_NAME);
	prb_str_printf(s, "  %5.1f %%  %5.1f %%  ", percent(row->cpu, row->wall),
		       percent(row->queue, row->wall));
	put_doing(r, row->last, s);
	prb_str_puts(s, "  ");
	if (row->last->stack) {
		f = prb_tree_function_of(r->tree, row->last->stack);
		prb_text_escape(s, f->name);
		if (prb_function_file(f))
			prb_str_puts(s, "  ");
		prb_function_put_place(s, f, 0);
	}
	prb_str_putc(s, '\n');
}

static void add_runs(const struct prb_recording *r, struct row *rows)
{
	const struct prb_run *run;

	prb_vec_each (run, &r->runs) {
		struct row *row = &rows[run->thread];

		row->cpu += run->cpu;
		row->wall += run->wall;
		row->queue += run->queue;
		row->last = run;
	}
}

struct prb_error *prb_top_put_threads(const struct prb_top *top, size_t most_rows,
				      struct prb_str *s)
{
	struct prb_recording r = prb_top_slice(top, prb_top_first_part(top), prb_top_end(top));
	size_t count = r.threads.count, shown = 0, hidden = 0;
	prb_auto_free struct row *rows = calloc(count + 1, sizeof(*rows));

	if (!rows)
		return prb_error_nomem();
	for (uint32_t i = 0; i < count; i++)
		rows[i].thread = i;
	add_runs(&r, rows);
	qsort(rows, count, sizeof(*rows), compare);
	prb_str_puts(s, "    tid  name                      cpu    queue  now                     "
			"in\n");
	for (size_t i = 0; i < count; i++) {
		const struct prb_profile_thread *thread = &r.threads.items[rows[i].thread];

		if (thread->ended || !rows[i].last || (top->tid && thread->tid != top->tid) ||
		    !prb_top_matches(top, prb_profile_thread_name(thread)))
			continue;
		if (most_rows && shown == most_rows)
			hidden++;
		else
			put_row(&r, &rows[i], s);
		shown += !most_rows || shown < most_rows;
	}
	if (hidden)
		prb_str_printf(s, " … %zu more\n", hidden);
	return NULL;
}

pid_t prb_top_tid_in(const char *line)
{
	while (*line == ' ')
		line++;
	return isdigit((unsigned char)*line) ? (pid_t)strtol(line, NULL, 10) : 0;
}

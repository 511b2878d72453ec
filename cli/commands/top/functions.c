/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of functions, with how their share has changed over the last parts. */
#include "cli/commands/top/top.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/text.h"
#include "profile/recording/fold.h"

enum { TREND = 8, WIDEST_NAME = 40 };

struct table {
	const struct prb_top *top;
	struct prb_profile_choice choice;
	struct prb_report report;
	struct prb_number_map lines; /* frames by function and line, if lines are wanted */
	float *trend;		     /* TREND shares for each place, the newest last */
};

static void table_deinit(struct table *t)
{
	prb_report_deinit(&t->report);
	free(t->trend);
	prb_number_map_deinit(&t->lines);
	free((bool *)t->choice.threads);
}

static struct prb_error *choose_thread(struct table *t, const struct prb_recording *r)
{
	bool *threads;

	if (!t->top->tid)
		return NULL;
	threads = calloc(r->threads.count + 1, sizeof(*threads));
	if (!threads)
		return prb_error_nomem();
	for (size_t i = 0; i < r->threads.count; i++)
		threads[i] = r->threads.items[i].tid == t->top->tid;
	t->choice.threads = threads;
	return NULL;
}

/* The share of each place in one part, as its own. */
static void add_trend(struct table *t, size_t part, size_t column)
{
	struct prb_recording r = prb_top_slice(t->top, part, part + 1);
	const struct prb_run *run;
	double whole = 0;

	prb_vec_each (run, &r.runs)
		whole += (double)prb_run_weight(run, &t->choice);
	if (whole <= 0)
		return;
	prb_vec_each (run, &r.runs) {
		int64_t weight = prb_run_weight(run, &t->choice);

		if (weight > 0 && run->stack)
			t->trend[prb_place_of(r.tree, t->choice.lines, run->stack) * TREND +
				 column] += (float)((double)weight / whole);
	}
}

static uint64_t line_key(uint32_t function, int32_t line)
{
	return (uint64_t)function << 32 | (uint32_t)line;
}

/* By function and line, which are all that a row has. */
static struct prb_error *number_lines(struct table *t, const struct prb_tree *tree)
{
	for (size_t i = 0; i < tree->frames.count; i++) {
		const struct prb_tree_frame *frame = &tree->frames.items[i];

		if (!prb_number_map_put(&t->lines, line_key(frame->function, frame->line), i))
			return prb_error_nomem();
	}
	return NULL;
}

static struct prb_error *make_trend(struct table *t, const struct prb_recording *r)
{
	size_t parts = prb_top_end(t->top), columns = PRB_MIN(parts, (size_t)TREND);

	size_t places = prb_place_count(r->tree, t->choice.lines);

	t->trend = calloc(places + 1, TREND * sizeof(*t->trend));
	if (!t->trend)
		return prb_error_nomem();
	for (size_t i = 0; i < columns; i++)
		add_trend(t, parts - columns + i, TREND - columns + i);
	return t->choice.lines ? number_lines(t, r->tree) : NULL;
}

static void put_trend(const struct table *t, const struct prb_report_row *row, struct prb_str *s)
{
	static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	size_t place = row->function;

	if (t->choice.lines &&
	    !prb_number_map_get(&t->lines, line_key(row->function, row->line), &place))
		return;
	for (size_t i = 0; i < TREND; i++) {
		float share = t->trend[place * TREND + i];
		int level = share <= 0 ? 0 : 1 + (int)(share * 7.5F);

		prb_str_puts(s, bars[PRB_MIN(level, 8)]);
	}
}

static void put_row(const struct table *t, const struct prb_recording *r,
		    const struct prb_report_row *row, struct prb_str *s)
{
	const struct prb_tree_function *f = &r->tree->functions.items[row->function];
	double whole = t->report.weight > 0 ? (double)t->report.weight : 1;
	int32_t line = t->choice.lines ? row->line : f->first_line;

	prb_str_printf(s, " %5.1f %%  ", 100 * (double)row->self / whole);
	put_trend(t, row, s);
	prb_str_printf(s, "  %5.1f %%  ", 100 * (double)row->total / whole);
	prb_text_column(s, f->name, WIDEST_NAME);
	prb_str_puts(s, "  ");
	prb_function_put_place(s, f, line);
	prb_str_putc(s, '\n');
}

static int by_total(const void *a, const void *b)
{
	const struct prb_report_row *x = a, *y = b;

	return (x->total < y->total) - (x->total > y->total);
}

static int by_name(const void *a, const void *b, void *context)
{
	const struct prb_report_row *x = a, *y = b;
	const struct prb_tree *tree = context;

	return strcmp(tree->functions.items[x->function].name,
		      tree->functions.items[y->function].name);
}

static void sort(struct table *t, struct prb_tree *tree)
{
	if (!t->report.rows.count)
		return;
	if (t->top->sort == PRB_TOP_BY_TOTAL)
		qsort(t->report.rows.items, t->report.rows.count, sizeof(*t->report.rows.items),
		      by_total);
	if (t->top->sort == PRB_TOP_BY_NAME)
		qsort_r(t->report.rows.items, t->report.rows.count, sizeof(*t->report.rows.items),
			by_name, tree);
}

static void put_rows(const struct table *t, const struct prb_recording *r, size_t most,
		     struct prb_str *s)
{
	const struct prb_report_row *row;
	size_t shown = 0, hidden = 0;

	prb_vec_each (row, &t->report.rows) {
		const struct prb_tree_function *f = &r->tree->functions.items[row->function];

		if (!prb_top_matches(t->top, f->name) &&
		    !prb_top_matches(t->top, prb_function_file(f)))
			continue;
		if (most && shown == most)
			hidden++;
		else
			put_row(t, r, row, s);
		shown += !most || shown < most;
	}
	if (hidden)
		prb_str_printf(s, " … %zu more\n", hidden);
}

struct prb_error *prb_top_put_functions(const struct prb_top *top, size_t most_rows,
					struct prb_str *s)
{
	struct prb_recording r = prb_top_slice(top, prb_top_first_part(top), prb_top_end(top));
	__attribute__((cleanup(table_deinit))) struct table t = {
		.top = top, .choice = {.weight = top->weight, .lines = top->lines}};

	PRB_TRY(choose_thread(&t, &r));
	PRB_TRY(prb_report_make(&r, &t.choice, &t.report));
	PRB_TRY(make_trend(&t, &r));
	sort(&t, r.tree);
	prb_str_puts(s, "    self  trend       total  function\n");
	if (!t.report.rows.count)
		prb_str_printf(s, "         (%s)\n", prb_weight_words[top->weight].none);
	put_rows(&t, &r, most_rows, s);
	return NULL;
}

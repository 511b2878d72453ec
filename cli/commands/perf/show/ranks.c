/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds the rank whose main thread does something else than the other ranks' main threads, and its
 * functions.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/perf/show/performance.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"

enum { MOST_ROWS = 8, MOST_CELLS = 1 << 24, WIDEST_NAME = 40 };

/* Minimal difference as a share of the time, in all and of one function. */
static const double LEAST = 0.1, LEAST_OF_FUNCTION = 0.03;

/** A function that the odd rank spends more or less time in than the others. */
struct excess {
	uint32_t function;
	double its, others;
};

struct ranks {
	const struct prb_recording *recording;
	size_t count, functions;
	double *shares; /* of the wall time of each rank's main thread: [rank][function] */
	size_t odd;
	PRB_VEC(struct excess) list;
};

static bool are_ranks(const struct prb_recording *r)
{
	static const char rank[] = "rank ";

	for (uint32_t i = 0; i <= r->others.count; i++) {
		const char *command = prb_recording_command_line(r, i);

		if (!command || strncmp(command, rank, strlen(rank)) != 0)
			return false;
	}
	return r->others.count > 0;
}

static struct prb_error *note_shares(struct ranks *ranks, size_t number)
{
	const struct prb_recording *r = ranks->recording;
	prb_auto_free bool *threads = calloc(r->threads.count + 1, sizeof(*threads));
	const struct prb_profile_choice choice = {.weight = PRB_WEIGHT_WALL, .threads = threads};
	const struct prb_report_row *row;
	struct prb_report report;

	if (!threads)
		return prb_error_nomem();
	for (size_t i = 0; i < r->threads.count; i++)
		threads[i] = r->threads.items[i].process == number &&
			     r->threads.items[i].tid == prb_recording_pid(r, (uint32_t)number);
	PRB_TRY(prb_report_make(r, &choice, &report));
	prb_vec_each (row, &report.rows)
		if (report.weight > 0)
			ranks->shares[number * ranks->functions + row->function] =
				(double)row->self / (double)report.weight;
	prb_report_deinit(&report);
	return NULL;
}

/** Mean share of the other ranks. */
static double of_others(const struct ranks *ranks, size_t rank, size_t function)
{
	double sum = 0;

	for (size_t i = 0; i < ranks->count; i++)
		sum += i == rank ? 0 : ranks->shares[i * ranks->functions + function];
	return sum / (double)(ranks->count - 1);
}

/** Share of its time that the rank spends differently. */
static double distance(const struct ranks *ranks, size_t rank)
{
	double sum = 0;

	for (size_t i = 0; i < ranks->functions; i++)
		sum += fabs(ranks->shares[rank * ranks->functions + i] - of_others(ranks, rank, i));
	return sum / 2;
}

static int by_difference(const void *a, const void *b)
{
	const struct excess *x = a, *y = b;
	double first = fabs(x->its - x->others), second = fabs(y->its - y->others);

	return (first < second) - (first > second);
}

static struct prb_error *find_odd(struct ranks *ranks)
{
	double most = 0;

	for (size_t i = 0; i < ranks->count; i++) {
		double here = distance(ranks, i);

		if (here > most)
			ranks->odd = i;
		most = PRB_MAX(most, here);
	}
	if (most < LEAST)
		return NULL;
	for (size_t i = 0; i < ranks->functions; i++) {
		double its = ranks->shares[ranks->odd * ranks->functions + i];
		double others = of_others(ranks, ranks->odd, i);
		struct excess *place;

		if (fabs(its - others) < LEAST_OF_FUNCTION)
			continue;
		place = prb_vec_push(&ranks->list);
		if (!place)
			return prb_error_nomem();
		*place = (struct excess){(uint32_t)i, its, others};
	}
	if (ranks->list.count)
		qsort(ranks->list.items, ranks->list.count, sizeof(struct excess), by_difference);
	return NULL;
}

static struct prb_error *ranks_make(const struct prb_recording *r, struct ranks *ranks)
{
	ranks->recording = r;
	ranks->count = r->others.count + 1;
	ranks->functions = r->tree->functions.count;
	if (!are_ranks(r) || ranks->functions > MOST_CELLS / ranks->count)
		return NULL;
	ranks->shares = calloc(ranks->count * ranks->functions + 1, sizeof(*ranks->shares));
	if (!ranks->shares)
		return prb_error_nomem();
	for (size_t i = 0; i < ranks->count; i++)
		PRB_TRY(note_shares(ranks, i));
	return find_odd(ranks);
}

static void ranks_deinit(struct ranks *ranks)
{
	free(ranks->shares);
	prb_vec_free(&ranks->list);
}

struct prb_error *prb_performance_ranks_text(const struct prb_recording *recording,
					     struct prb_str *s)
{
	__attribute__((cleanup(ranks_deinit))) struct ranks ranks = {};

	PRB_TRY(ranks_make(recording, &ranks));
	if (!ranks.list.count)
		return NULL;
	prb_str_putc(s, '\n');
	prb_text_escape(s, prb_recording_command_line(recording, (uint32_t)ranks.odd));
	prb_str_puts(s, " differs most: its main thread, and the mean of the others, by wall time\n"
			"     its   others  function\n");
	for (size_t i = 0; i < PRB_MIN(ranks.list.count, (size_t)MOST_ROWS); i++) {
		const struct excess *here = &ranks.list.items[i];
		const struct prb_tree_function *f =
			&recording->tree->functions.items[here->function];

		prb_str_printf(s, " %5.1f %%  %5.1f %%  ", 100 * here->its, 100 * here->others);
		prb_text_column(s, f->name, WIDEST_NAME);
		prb_str_puts(s, "  ");
		prb_function_put_place(s, f, f->first_line);
		prb_str_putc(s, '\n');
	}
	return NULL;
}

struct prb_error *prb_performance_ranks_json(const struct prb_recording *recording,
					     struct prb_json *json)
{
	__attribute__((cleanup(ranks_deinit))) struct ranks ranks = {};
	const struct excess *here;

	PRB_TRY(ranks_make(recording, &ranks));
	if (!ranks.list.count)
		return NULL;
	prb_json_open(json, "odd_rank", '{');
	prb_json_text(json, "command", prb_recording_command_line(recording, (uint32_t)ranks.odd));
	prb_json_integer(json, "pid", prb_recording_pid(recording, (uint32_t)ranks.odd));
	prb_json_open(json, "functions", '[');
	prb_vec_each (here, &ranks.list) {
		prb_json_open(json, NULL, '{');
		prb_performance_json_function(
			json, &recording->tree->functions.items[here->function], false, 0);
		prb_json_real(json, "share", here->its, 6);
		prb_json_real(json, "others", here->others, 6);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	prb_json_close(json, '}');
	return NULL;
}

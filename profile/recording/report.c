/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"

const struct prb_weight_words prb_weight_words[PRB_WEIGHTS] = {
	[PRB_WEIGHT_CPU] = {"cpu", "on a processor", "no thread used a processor"},
	[PRB_WEIGHT_WALL] = {"wall", "of all threads", "no samples were taken"},
	[PRB_WEIGHT_RUNQUEUE] = {"runqueue", "of waiting for a processor",
				 "no thread waited for a processor"},
	[PRB_WEIGHT_GIL] = {"gil", "of holding the GIL", "no thread was seen to hold a GIL"},
	[PRB_WEIGHT_BLOCKED] = {"blocked", "of waiting", "no thread waited for anything"},
};

struct prb_error *prb_weight_parse(const char *mode, enum prb_weight *ret)
{
	*ret = PRB_WEIGHT_CPU;
	for (unsigned i = 0; mode && i < PRB_WEIGHTS; i++)
		if (!strcmp(mode, prb_weight_words[i].mode)) {
			*ret = (enum prb_weight)i;
			return NULL;
		}
	return mode ? prb_error_hint(
			      prb_error_create(PRB_ERROR_USAGE, "there is no mode '%.100s'", mode),
			      "'cpu' weighs the time on a processor, 'runqueue' the time that "
			      "threads waited for one, 'gil' the time that they held the GIL, "
			      "'blocked' the time that they waited for something else, 'wall' the "
			      "time that passed")
		    : NULL;
}

/* A thread stopped by job control waits for nothing of the program. */
static bool is_blocked(const struct prb_run *run)
{
	return (run->state == PRB_RUN_ASLEEP || run->state == PRB_RUN_IN_KERNEL) &&
	       run->wait_kind != PRB_WAIT_GIL;
}

int64_t prb_run_weight(const struct prb_run *run, const struct prb_profile_choice *choice)
{
	if (choice->threads && !choice->threads[run->thread])
		return 0;
	switch (choice->weight) {
	case PRB_WEIGHT_CPU:
		return run->cpu;
	case PRB_WEIGHT_RUNQUEUE:
		return run->queue;
	case PRB_WEIGHT_GIL:
		return run->gil ? run->wall : 0;
	case PRB_WEIGHT_BLOCKED:
		return is_blocked(run) ? run->wall : 0;
	default:
		return run->wall;
	}
}

/* The sum of the squares of what its samples weigh. */
static double weight_squares(const struct prb_run *run, enum prb_weight weight)
{
	switch (weight) {
	case PRB_WEIGHT_CPU:
		return run->cpu_squares;
	case PRB_WEIGHT_RUNQUEUE:
		return prb_run_queue_squares(run);
	default:
		return prb_run_wall_squares(run);
	}
}

struct prb_share prb_share_of(double part, double whole, double samples)
{
	const double z = 1.959963984540054;
	struct prb_share ret = {.high = 1};
	double p, centre, spread;

	if (whole <= 0 || samples <= 0)
		return ret;
	p = fmin(fmax(part / whole, 0), 1);
	centre = p + z * z / (2 * samples);
	spread = z * sqrt(p * (1 - p) / samples + z * z / (4 * samples * samples));
	ret.share = p;
	ret.low = fmax((centre - spread) / (1 + z * z / samples), 0);
	ret.high = fmin((centre + spread) / (1 + z * z / samples), 1);
	return ret;
}

struct prb_share prb_report_share(const struct prb_report *report, int64_t weight)
{
	return prb_share_of((double)weight, (double)report->weight, report->samples);
}

/* Intermediate sums; one element for each stack, frame or function. */
struct sums {
	const struct prb_tree *tree;
	const struct prb_profile_choice *choice;
	int64_t *self, *below;	    /* of stacks: their own, and with all that they call */
	uint64_t *samples;	    /* of stacks */
	uint32_t *child, *next;	    /* of stacks: their first call, and their caller's next call */
	uint32_t *row;		    /* of frames: their row, plus one */
	uint32_t *open;		    /* of rows: how often it is among the callers */
	struct prb_number_map rows; /* by function and line */
};

static void sums_deinit(struct sums *s)
{
	free(s->self);
	free(s->below);
	free(s->samples);
	free(s->child);
	free(s->next);
	free(s->row);
	free(s->open);
	prb_number_map_deinit(&s->rows);
}

static struct prb_error *sums_init(struct sums *s)
{
	size_t stacks = s->tree->stacks.count;

	s->self = calloc(stacks, sizeof(*s->self));
	s->below = calloc(stacks, sizeof(*s->below));
	s->samples = calloc(stacks, sizeof(*s->samples));
	s->child = calloc(stacks, sizeof(*s->child));
	s->next = calloc(stacks, sizeof(*s->next));
	s->row = calloc(s->tree->frames.count + 1, sizeof(*s->row));
	s->open = calloc(s->tree->frames.count + 1, sizeof(*s->open));
	return s->self && s->below && s->samples && s->child && s->next && s->row && s->open
		       ? NULL
		       : prb_error_nomem();
}

static void add_runs(struct sums *s, const struct prb_recording *recording, struct prb_report *ret)
{
	const struct prb_run *run;
	double squares = 0;

	prb_vec_each (run, &recording->runs) {
		int64_t weight = prb_run_weight(run, s->choice);

		if (weight <= 0)
			continue;
		s->self[run->stack] += weight;
		s->samples[run->stack] += run->samples;
		ret->weight += weight;
		ret->states[run->state] += weight;
		ret->taken += run->samples;
		squares += weight_squares(run, s->choice->weight);
	}
	if (squares > 0)
		ret->samples = (double)ret->weight * (double)ret->weight / squares;
}

/* A caller's number is lower than those of its calls. */
static void link_calls(struct sums *s)
{
	for (size_t i = s->tree->stacks.count; i-- > 1;) {
		uint32_t parent = s->tree->stacks.items[i].parent;

		s->below[i] += s->self[i];
		s->below[parent] += s->below[i];
		s->next[i] = s->child[parent];
		s->child[parent] = (uint32_t)i;
	}
}

static struct prb_error *find_row(struct sums *s, uint32_t frame, struct prb_report *ret,
				  uint32_t *ret_row)
{
	const struct prb_tree_frame *f = &s->tree->frames.items[frame];
	int32_t line = s->choice->lines ? f->line : 0;
	uint64_t key = (uint64_t)f->function << 32 | (uint32_t)line;
	struct prb_report_row *row;
	size_t number;

	if (!s->row[frame]) {
		if (!prb_number_map_get(&s->rows, key, &number)) {
			row = prb_vec_push(&ret->rows);
			number = ret->rows.count - 1;
			if (!row || !prb_number_map_put(&s->rows, key, number))
				return prb_error_nomem();
			row->function = f->function;
			row->line = line;
		}
		s->row[frame] = (uint32_t)number + 1;
	}
	*ret_row = s->row[frame] - 1;
	return NULL;
}

static struct prb_error *enter(struct sums *s, uint32_t stack, struct prb_report *ret)
{
	struct prb_report_row *row;
	uint32_t number;

	PRB_TRY(find_row(s, s->tree->stacks.items[stack].frame, ret, &number));
	row = &ret->rows.items[number];
	row->self += s->self[stack];
	row->samples += s->samples[stack];
	if (!s->open[number]++) /* a recursion counts once */
		row->total += s->below[stack];
	return NULL;
}

static void leave(struct sums *s, uint32_t stack)
{
	s->open[s->row[s->tree->stacks.items[stack].frame] - 1]--;
}

/* Through all calls, callers first; a stack that weighs nothing is no row. */
static struct prb_error *add_rows(struct sums *s, struct prb_report *ret)
{
	uint32_t at = s->child[0];

	while (at) {
		bool down = s->below[at] > 0;

		if (down)
			PRB_TRY(enter(s, at, ret));
		if (down && s->child[at]) {
			at = s->child[at];
			continue;
		}
		if (down)
			leave(s, at);
		while (at && !s->next[at]) {
			at = s->tree->stacks.items[at].parent;
			if (at)
				leave(s, at);
		}
		at = at ? s->next[at] : 0;
	}
	return NULL;
}

static int compare_rows(const void *a, const void *b)
{
	const struct prb_report_row *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->function > y->function) - (x->function < y->function);
}

struct prb_error *prb_report_make(const struct prb_recording *recording,
				  const struct prb_profile_choice *choice, struct prb_report *ret)
{
	__attribute__((cleanup(sums_deinit))) struct sums s = {recording->tree, choice};
	struct prb_error *err;

	*ret = (struct prb_report){};
	PRB_TRY(sums_init(&s));
	add_runs(&s, recording, ret);
	link_calls(&s);
	err = add_rows(&s, ret);
	if (err)
		prb_report_deinit(ret);
	else if (ret->rows.count)
		qsort(ret->rows.items, ret->rows.count, sizeof(*ret->rows.items), compare_rows);
	return err;
}

void prb_report_deinit(struct prb_report *report)
{
	prb_vec_free(&report->rows);
}

double prb_report_traced(const struct prb_recording *recording,
			 const struct prb_profile_choice *choice)
{
	const struct prb_tree *tree = recording->tree;
	uint64_t taken = 0, traced = 0;
	const struct prb_run *run;

	prb_vec_each (run, &recording->runs) {
		const struct prb_tree_function *f;

		if (!run->stack || prb_run_weight(run, choice) <= 0)
			continue;
		f = prb_tree_function_of(tree, run->stack);
		taken += run->samples;
		if (f->kind == PRB_FUNCTION_NOTE && !strcmp(f->name, PRB_NOTE_TRACED))
			traced += run->samples;
	}
	return taken ? 100 * (double)traced / (double)taken : 0;
}

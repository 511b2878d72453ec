/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/diff.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "profile/recording/range.h"

enum { PARTS = 30 };

enum which { BEFORE, AFTER, SIDES };
enum what { SELF, TOTAL, WHATS };

/* Of a row, over the parts of a recording: sums of w² and wW, where w is what the function weighs
 * in a part, and W what all do. The variance of its share follows from them. */
struct spread {
	double ww[WHATS], wW[WHATS];
};

struct side {
	struct prb_profile_choice choice; /* with `threads` */
	bool *threads;
	const struct prb_recording *facts;
	struct prb_report *report; /* the diff's */
	double WW;		   /* sum of W² */
	struct spread *spreads;	   /* of rows */
};

struct comparison {
	const struct prb_recording *joined;
	struct prb_diff *diff;
	struct side sides[SIDES];
	struct prb_number_map rows; /* by function and line */
};

static void comparison_deinit(struct comparison *c)
{
	for (unsigned i = 0; i < SIDES; i++) {
		free(c->sides[i].threads);
		free(c->sides[i].spreads);
	}
	prb_number_map_deinit(&c->rows);
}

static uint64_t key_of(const struct prb_report_row *row)
{
	return (uint64_t)row->function << 32 | (uint32_t)row->line;
}

static struct prb_error *side_init(struct comparison *c, enum which which,
				   const struct prb_profile_choice *choice)
{
	const struct prb_recording *r = c->joined;
	struct side *side = &c->sides[which];

	side->choice = *choice;
	side->facts = which == BEFORE ? r->before : r;
	side->report = which == BEFORE ? &c->diff->before : &c->diff->after;
	side->threads = calloc(r->threads.count + 1, sizeof(*side->threads));
	if (!side->threads)
		return prb_error_nomem();
	for (size_t i = 0; i < r->threads.count; i++)
		side->threads[i] = (i < r->before_threads) == (which == BEFORE) &&
				   (!choice->threads || choice->threads[i]);
	side->choice.threads = side->threads;
	return prb_report_make(r, &side->choice, side->report);
}

/* The row of the diff for a row of a report. */
static struct prb_error *find_row(struct comparison *c, const struct prb_report_row *row,
				  struct prb_diff_row **ret)
{
	size_t number = c->diff->rows.count;

	if (!prb_number_map_get(&c->rows, key_of(row), &number)) {
		struct prb_diff_row *slot = prb_vec_push(&c->diff->rows);

		if (!slot || !prb_number_map_put(&c->rows, key_of(row), number))
			return prb_error_nomem();
		slot->function = row->function;
		slot->line = row->line;
	}
	*ret = &c->diff->rows.items[number];
	return NULL;
}

static struct prb_error *add_rows(struct comparison *c)
{
	const struct prb_report_row *row;
	struct prb_diff_row *into;

	prb_vec_each (row, &c->diff->before.rows) {
		PRB_TRY(find_row(c, row, &into));
		into->before = *row;
	}
	prb_vec_each (row, &c->diff->after.rows) {
		PRB_TRY(find_row(c, row, &into));
		into->after = *row;
	}
	return NULL;
}

static void add_part(const struct comparison *c, struct side *side, const struct prb_report *part)
{
	const double W = (double)part->weight;
	const struct prb_report_row *row;

	side->WW += W * W;
	prb_vec_each (row, &part->rows) {
		const double w[WHATS] = {(double)row->self, (double)row->total};
		size_t number;

		if (!prb_number_map_get(&c->rows, key_of(row), &number))
			continue;
		for (unsigned i = 0; i < WHATS; i++) {
			side->spreads[number].ww[i] += w[i] * w[i];
			side->spreads[number].wW[i] += w[i] * W;
		}
	}
}

/* Reports one part of the sampled time of a side's threads. */
static struct prb_error *report_part(const struct comparison *c, const struct side *side,
				     unsigned number, struct prb_report *ret)
{
	struct prb_recording part = {.tree = c->joined->tree};
	const int64_t length = prb_recording_covered(side->facts) / PARTS;
	int64_t from = prb_recording_moment(side->facts, length * number);
	int64_t to = number == PARTS - 1 ? INT64_MAX
					 : prb_recording_moment(side->facts, length * (number + 1));
	struct prb_error *err = NULL;
	const struct prb_run *run;

	prb_vec_each (run, &c->joined->runs) {
		struct prb_run inside, *slot;

		if (!side->threads[run->thread] || !prb_run_inside(run, from, to, &inside))
			continue;
		slot = prb_vec_push(&part.runs);
		if (!slot) {
			err = prb_error_nomem();
			break;
		}
		*slot = inside;
	}
	if (!err)
		err = prb_report_make(&part, &side->choice, ret);
	prb_vec_free(&part.runs);
	return err;
}

static struct prb_error *add_parts(struct comparison *c, struct side *side)
{
	side->spreads = calloc(c->diff->rows.count + 1, sizeof(*side->spreads));
	if (!side->spreads)
		return prb_error_nomem();
	for (unsigned i = 0; i < PARTS; i++) {
		struct prb_report part;

		PRB_TRY(report_part(c, side, i, &part));
		add_part(c, side, &part);
		prb_report_deinit(&part);
	}
	return NULL;
}

/* The variance of a share, from how it varies between the parts. */
static double variance(const struct side *side, const struct spread *spread, enum what what,
		       double share)
{
	const double whole = (double)side->report->weight;
	double squares = spread->ww[what] - 2 * share * spread->wW[what] + share * share * side->WW;

	return whole > 0 ? fmax(squares, 0) * PARTS / (PARTS - 1) / (whole * whole) : 0;
}

static double share_of(const struct side *side, int64_t weight)
{
	return side->report->weight > 0 ? fmin((double)weight / (double)side->report->weight, 1)
					: 0;
}

/* How many samples of the recordings are worth one independent sample. */
static double samples_for_one(const struct comparison *c, size_t row, enum what what,
			      const double shares[SIDES])
{
	double varies = 0, expected = 0;

	for (unsigned i = 0; i < SIDES; i++) {
		const struct side *side = &c->sides[i];

		varies += variance(side, &side->spreads[row], what, shares[i]);
		if (side->report->samples > 0)
			expected += shares[i] * (1 - shares[i]) / side->report->samples;
	}
	return expected > 0 ? fmax(varies / expected, 1) : 1;
}

/* Newcombe's interval for a difference, from those of the shares, and a score test. */
static struct prb_change compare(const struct comparison *c, size_t row, enum what what,
				 int64_t before, int64_t after)
{
	const double shares[SIDES] = {share_of(&c->sides[BEFORE], before),
				      share_of(&c->sides[AFTER], after)};
	const double worth = samples_for_one(c, row, what, shares);
	const double n = c->diff->before.samples / worth, m = c->diff->after.samples / worth;
	const struct prb_share a = prb_share_of(shares[BEFORE], 1, n);
	const struct prb_share b = prb_share_of(shares[AFTER], 1, m);
	const double change = shares[AFTER] - shares[BEFORE];
	double common, error;

	if (!(n > 0) || !(m > 0))
		return (struct prb_change){shares[BEFORE], shares[AFTER], -1, 1, 1, false, worth};
	common = (n * shares[BEFORE] + m * shares[AFTER]) / (n + m);
	error = sqrt(common * (1 - common) * (1 / n + 1 / m));
	return (struct prb_change){
		.before = shares[BEFORE],
		.after = shares[AFTER],
		.low = change - hypot(b.share - b.low, a.high - a.share),
		.high = change + hypot(b.high - b.share, a.share - a.low),
		.chance = error > 0 ? erfc(fabs(change) / error / M_SQRT2) : 1,
		.worth = worth,
	};
}

static int compare_chances(const void *x, const void *y)
{
	const struct prb_change *a = *(struct prb_change *const *)x;
	const struct prb_change *b = *(struct prb_change *const *)y;

	return (a->chance > b->chance) - (a->chance < b->chance);
}

/* Holm's bound: the least probable of m changes has to be m times as improbable as one alone. */
static struct prb_error *find_certain(struct prb_diff *diff, enum what what)
{
	size_t count = diff->rows.count;
	prb_auto_free struct prb_change **changes = calloc(count + 1, sizeof(struct prb_change *));

	if (!changes)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++)
		changes[i] = what == SELF ? &diff->rows.items[i].self : &diff->rows.items[i].total;
	if (count)
		qsort(changes, count, sizeof(struct prb_change *), compare_chances);
	for (size_t i = 0; i < count && changes[i]->chance * (double)(count - i) < 0.05; i++)
		changes[i]->certain = true;
	return NULL;
}

static double size_of(const struct prb_change *change)
{
	return fabs(change->after - change->before);
}

static int compare_rows(const void *x, const void *y)
{
	const struct prb_diff_row *a = x, *b = y;

	if (size_of(&a->self) != size_of(&b->self))
		return size_of(&a->self) < size_of(&b->self) ? 1 : -1;
	if (size_of(&a->total) != size_of(&b->total))
		return size_of(&a->total) < size_of(&b->total) ? 1 : -1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

static struct prb_error *make(struct comparison *c, const struct prb_profile_choice *choice)
{
	struct prb_diff *diff = c->diff;

	for (unsigned i = 0; i < SIDES; i++)
		PRB_TRY(side_init(c, (enum which)i, choice));
	PRB_TRY(add_rows(c));
	for (unsigned i = 0; i < SIDES; i++)
		PRB_TRY(add_parts(c, &c->sides[i]));
	for (size_t i = 0; i < diff->rows.count; i++) {
		struct prb_diff_row *row = &diff->rows.items[i];

		row->self = compare(c, i, SELF, row->before.self, row->after.self);
		row->total = compare(c, i, TOTAL, row->before.total, row->after.total);
	}
	PRB_TRY(find_certain(diff, SELF));
	PRB_TRY(find_certain(diff, TOTAL));
	if (diff->rows.count)
		qsort(diff->rows.items, diff->rows.count, sizeof(*diff->rows.items), compare_rows);
	return NULL;
}

struct prb_error *prb_diff_make(const struct prb_recording *joined,
				const struct prb_profile_choice *choice, struct prb_diff *ret)
{
	__attribute__((cleanup(comparison_deinit))) struct comparison c = {joined, ret};
	struct prb_error *err;

	*ret = (struct prb_diff){};
	err = make(&c, choice);
	if (err)
		prb_diff_deinit(ret);
	return err;
}

void prb_diff_deinit(struct prb_diff *diff)
{
	prb_vec_free(&diff->rows);
	prb_report_deinit(&diff->before);
	prb_report_deinit(&diff->after);
}

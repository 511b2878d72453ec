/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "rings/torch_rings.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"

enum { AHEAD = 8 }; /* steps in which a program comes as far ahead of its GPU as it was */
enum { KIND, STEPS, DURATION, OWN, PAIRS, OVERHEAD, LOW, HIGH };

static const struct prb_column columns[] = {
	[KIND] =
		{"kind", PRB_COLUMN_TEXT,
		 "sampled: modules are hooked; unsampled: only the step's end is seen; hook-free: "
		 "unsampled, without the time of our functions; all: every step that was recorded"},
	[STEPS] = {"steps", PRB_COLUMN_INTEGER, "How many there were"},
	[DURATION] = {"duration", PRB_COLUMN_REAL, "Median of a step", "ms"},
	[OWN] = {"own", PRB_COLUMN_REAL, "Median of what functions of the agent took in a step",
		 "us"},
	[PAIRS] = {"pairs", PRB_COLUMN_INTEGER,
		   "Steps that were compared with hook-free ones near them"},
	[OVERHEAD] = {"overhead", PRB_COLUMN_REAL,
		      "How much longer a step takes than a hook-free one: median of the pairs. "
		      "With a GPU: together with the steps after it, in which Python catches up",
		      "%"},
	[LOW] = {"overhead_low", PRB_COLUMN_REAL,
		 "Bounds of that, with a probability of 95 %; NULL for fewer than 6 pairs", "%"},
	[HIGH] = {"overhead_high", PRB_COLUMN_REAL, "See overhead_low", "%"},
	{},
};

/** The compared values of one kind of step. */
struct sample {
	double *durations, *owns, *ratios;
	size_t steps, pairs;
};

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

/** NaN of none; sorts them. */
static double median(double *values, size_t count)
{
	if (!count)
		return NAN;
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void put(struct prb_scan *scan, unsigned column, double value)
{
	if (isfinite(value))
		prb_put_real(scan, column, value);
}

/** The bounds of a median are values at ranks that the binomial distribution gives. */
static void put_bounds(struct prb_scan *scan, const struct sample *s)
{
	double reach = 0.98 * sqrt((double)s->pairs), middle = (double)s->pairs / 2;

	if (s->pairs < 6)
		return;
	put(scan, LOW, s->ratios[(size_t)fmax(0, floor(middle - reach))]);
	put(scan, HIGH, s->ratios[(size_t)fmin((double)s->pairs - 1, ceil(middle + reach))]);
}

static struct prb_error *put_row(struct prb_scan *scan, const char *kind, struct sample *s,
				 bool compared)
{
	if (!s->steps)
		return NULL;
	PRB_TRY(prb_scan_row(scan));
	prb_put_static(scan, KIND, kind);
	prb_put_integer(scan, STEPS, (int64_t)s->steps);
	put(scan, DURATION, median(s->durations, s->steps));
	put(scan, OWN, median(s->owns, s->steps));
	if (!compared)
		return NULL;
	prb_put_integer(scan, PAIRS, (int64_t)s->pairs);
	put(scan, OVERHEAD, median(s->ratios, s->pairs));
	put_bounds(scan, s);
	return NULL;
}

static double own_of(const struct prb_torch_step_row *step)
{
	return isfinite(step->own) && step->own / 1e3 < step->duration ? step->own / 1e3 : 0;
}

/** The mean of the unsampled neighbours, without our time in them; NaN: there is none. */
static double free_beside(const struct prb_torch_rings *rings, size_t i)
{
	const struct prb_torch_step_row *steps = rings->steps.items;
	double sum = 0;
	int count = 0;

	for (int side = -1; side <= 1; side += 2) {
		size_t beside = i + (size_t)side;

		if ((side < 0 && !i) || beside >= rings->steps.count || steps[beside].kind != 'u' ||
		    steps[beside].local != steps[i].local + side)
			continue;
		sum += steps[beside].duration - own_of(&steps[beside]);
		count++;
	}
	return count ? sum / count : NAN;
}

/** Percent that a sampled step takes longer than those beside it; NaN: there is none. */
static double than_beside(const struct prb_torch_rings *rings, size_t i)
{
	return 100 * (rings->steps.items[i].duration / free_beside(rings, i) - 1);
}

/**
 * The same where Python runs ahead of a GPU: it falls back in a sampled step, and needs less time
 * for some steps after it. NaN: another sampled step is near.
 */
static double with_later_ones(const struct prb_torch_rings *rings, size_t i)
{
	const struct prb_torch_step_row *steps = rings->steps.items;
	double before = 0, after = 0;

	if (i < AHEAD || rings->steps.count - i <= AHEAD)
		return NAN;
	for (size_t at = i - AHEAD; at <= i + AHEAD; at++) {
		const struct prb_torch_step_row *step = &steps[at];

		if ((uint64_t)step->local - (uint64_t)steps[i].local != (uint64_t)at - i ||
		    (step->kind != 'u' && at != i))
			return NAN;
		*(at < i ? &before : &after) += step->duration - (at == i ? 0 : own_of(step));
	}
	before /= AHEAD;
	return 100 * (after - (AHEAD + 1) * before) / before;
}

static void add(struct sample *s, double duration, double own)
{
	s->owns[s->steps] = own * 1e3;
	s->durations[s->steps++] = duration;
}

static struct prb_error *make(struct sample *s, size_t count)
{
	s->durations = calloc(3 * count + 3, sizeof(double));
	if (!s->durations)
		return prb_error_nomem();
	s->owns = s->durations + count + 1;
	s->ratios = s->owns + count + 1;
	return NULL;
}

/** Sampled steps against their neighbours; an unsampled one against itself without our time. */
static void fill(const struct prb_torch_rings *rings, struct sample *sampled,
		 struct sample *unsampled, struct sample *without)
{
	for (size_t i = 0; i < rings->steps.count; i++) {
		const struct prb_torch_step_row *step = &rings->steps.items[i];
		double own = own_of(step), ratio;

		if (step->kind == 'u') {
			add(unsampled, step->duration, own);
			add(without, step->duration - own, 0);
			unsampled->ratios[unsampled->pairs++] = 100 * own / (step->duration - own);
		} else if (step->kind == 's') {
			add(sampled, step->duration, own);
			ratio = rings->gpu.count ? with_later_ones(rings, i)
						 : than_beside(rings, i);
			if (isfinite(ratio))
				sampled->ratios[sampled->pairs++] = ratio;
		}
	}
}

/** All steps: each kind's overhead, by how many there are of it. */
static struct prb_error *put_all(struct prb_scan *scan, const struct sample *sampled,
				 const struct sample *unsampled)
{
	size_t steps = sampled->steps + unsampled->steps;
	double sum = 0;

	if (!steps)
		return NULL;
	PRB_TRY(prb_scan_row(scan));
	prb_put_static(scan, KIND, "all");
	prb_put_integer(scan, STEPS, (int64_t)steps);
	if (sampled->steps && !sampled->pairs)
		return NULL;
	if (sampled->steps)
		sum += (double)sampled->steps * median(sampled->ratios, sampled->pairs);
	if (unsampled->steps)
		sum += (double)unsampled->steps * median(unsampled->ratios, unsampled->pairs);
	put(scan, OVERHEAD, sum / (double)steps);
	return NULL;
}

static struct prb_error *show(struct prb_scan *scan, const struct prb_torch_rings *rings)
{
	struct sample sampled = {}, unsampled = {}, without = {};
	struct prb_error *err = make(&sampled, rings->steps.count);

	err = err ? err : make(&unsampled, rings->steps.count);
	err = err ? err : make(&without, rings->steps.count);
	if (!err) {
		fill(rings, &sampled, &unsampled, &without);
		err = put_row(scan, "sampled", &sampled, true);
		err = err ? err : put_row(scan, "unsampled", &unsampled, true);
		err = err ? err : put_row(scan, "hook-free", &without, false);
		err = err ? err : put_all(scan, &sampled, &unsampled);
	}
	free(sampled.durations);
	free(unsampled.durations);
	free(without.durations);
	return err;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	__attribute__((cleanup(prb_torch_rings_deinit))) struct prb_torch_rings rings = {};

	PRB_TRY(prb_torch_rings_read(prb_instant_target(scan->instant), INT64_MIN, &rings));
	if (!rings.steps.count)
		prb_scan_note(scan, "torch.overhead is empty: no step of torch was recorded; "
				    "'probing PID config probing.torch.profiling=on' starts it");
	if (rings.steps.count == PRB_TORCH_MOST_ROWS)
		prb_scan_note(scan, "torch.overhead is of the first %d steps that are stored",
			      PRB_TORCH_MOST_ROWS);
	return show(scan, &rings);
}

const struct prb_table prb_table_torch_overhead = {
	.schema = "torch",
	.name = "overhead",
	.doc = "How much longer training steps take because they are recorded, from the steps "
	       "themselves",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 4,
	.scan = scan,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing cluster watch`: waits until a job of this machine makes no progress, then judges it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands/cluster/cluster.h"
#include "command/exit.h"
#include "command/output.h"
#include "cluster/looks/look.h"
#include "cluster/looks/movement.h"
#include "cluster/verdict/verdict.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"

enum {
	MOST_PHASES = 64, /* the last ones count */
	LOOKS_PER_LIMIT = 6,
};

/*
 * Seconds; a job may rest for so many times its usual rest. While a rank still moves, as one that
 * evaluates or saves for the others, the others may wait longer.
 */
static const double HANG = 60, TIMES_USUAL = 5, WHILE_ONE_MOVES = 5;

struct watch {
	struct prb_cluster *c;
	struct prb_round rounds[2];
	double *since; /* by rank: when it moved last */
	double phases[MOST_PHASES];
	size_t phase_count;
	double began; /* rest of the whole job; its ranks waited since then */
};

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(const struct watch *w)
{
	size_t count = PRB_MIN(w->phase_count, MOST_PHASES);
	double sorted[MOST_PHASES];

	if (!count)
		return 0;
	memcpy(sorted, w->phases, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_value);
	return sorted[count / 2];
}

static double limit_of(const struct watch *w)
{
	double hang = w->c->settings->hang > 0 ? w->c->settings->hang : HANG;

	return PRB_MAX(hang, TIMES_USUAL * median(w));
}

/** Looks once; *gone: no rank is left. */
static struct prb_error *look(struct watch *w, bool *gone)
{
	struct prb_round *last = &w->rounds[1];
	const struct prb_seen *seen;

	prb_round_deinit(&w->rounds[0]);
	w->rounds[0] = *last;
	*last = (struct prb_round){};
	PRB_TRY(prb_round_make(w->c->job, false, false, NULL, last));
	if (w->rounds[0].list.count)
		prb_movement_note(w->rounds, 2);
	*gone = true;
	prb_vec_each (seen, &last->list)
		*gone &= seen->gone;
	return NULL;
}

/** Notes which ranks have moved, and how long they had rested. */
static void note(struct watch *w)
{
	const struct prb_round *last = &w->rounds[1];

	for (size_t i = 0; i < last->list.count; i++) {
		const struct prb_seen *seen = &last->list.items[i];
		bool first = !w->since[i];

		if (!first && (!w->rounds[0].list.count || seen->movement == PRB_STILL ||
			       seen->movement == PRB_SPINS))
			continue;
		if (!first && w->rounds[0].list.items[i].collective)
			w->phases[w->phase_count++ % MOST_PHASES] = last->seconds - w->since[i];
		w->since[i] = last->seconds;
	}
}

/** True if ranks have waited for others for too long. */
static bool is_suspicious(struct watch *w)
{
	const struct prb_round *last = &w->rounds[1];
	double limit = limit_of(w), moved = 0, waited = last->seconds;

	for (size_t i = 0; i < last->list.count; i++) {
		const struct prb_seen *seen = &last->list.items[i];

		moved = PRB_MAX(moved, w->since[i]);
		if (seen->collective)
			waited = PRB_MIN(waited, w->since[i]);
	}
	w->began = waited;
	return last->seconds - moved >= limit ? waited < last->seconds
					      : last->seconds - waited >= WHILE_ONE_MOVES * limit;
}

static void forget(struct watch *w)
{
	for (size_t i = 0; i < PRB_CLUSTER_LOOKS; i++) {
		prb_round_deinit(&w->c->rounds[i]);
		w->c->rounds[i] = (struct prb_round){};
	}
	for (size_t i = 0; i < w->c->job->ranks.count; i++)
		w->since[i] = 0;
}

/** Judges the job; *hung: it hangs, and that was printed. */
static struct prb_error *judge(struct watch *w, bool *hung)
{
	prb_auto_verdict struct prb_verdict verdict = {};
	prb_auto_str struct prb_str text = {};

	PRB_TRY(prb_cluster_look(w->c, PRB_CLUSTER_LOOKS));
	PRB_TRY(prb_cluster_judge(w->c, &verdict));
	*hung = verdict.kind != PRB_VERDICT_MOVES;
	if (!*hung) {
		forget(w);
		return NULL;
	}
	prb_str_puts(&text, "ranks have waited for ");
	prb_text_duration(&text, w->rounds[1].seconds - w->began);
	prb_warn(prb_str_text(&text));
	return prb_cluster_tell(w->c, &verdict);
}

static struct prb_error *watch(struct watch *w)
{
	bool hung = false, gone = false;

	for (;;) {
		double rest = limit_of(w) / LOOKS_PER_LIMIT;
		const struct timespec pause = {(time_t)rest,
					       (long)((rest - (double)(time_t)rest) * 1e9)};

		PRB_TRY(look(w, &gone));
		if (gone)
			return NULL;
		note(w);
		if (is_suspicious(w))
			PRB_TRY(judge(w, &hung));
		if (hung)
			return NULL;
		if (nanosleep(&pause, NULL))
			return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
	}
}

struct prb_error *prb_cluster_watch(struct prb_cluster *c)
{
	prb_auto_free double *since = calloc(c->job->ranks.count + 1, sizeof(*since));
	struct watch w = {.c = c, .since = since};
	struct prb_error *err;

	if (!since)
		return prb_error_nomem();
	err = watch(&w);
	prb_round_deinit(&w.rounds[0]);
	prb_round_deinit(&w.rounds[1]);
	return err;
}

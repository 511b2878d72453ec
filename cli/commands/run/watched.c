/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/run/watched.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/limits.h"
#include "target/proc/cgroup.h"
#include "target/proc/process.h"

enum { CODE_STILL = 21 };

static const double BUSY = 0.05; /* of a processor: it works */
static const double LONGEST = 600;
static const double NEAR_LIMIT = 0.95;
static const char STILL[] = "still";

void prb_watched_news_deinit(struct prb_watched_news *news)
{
	prb_str_deinit(&news->sentence);
	prb_standstill_deinit(&news->still);
}

void prb_watched_deinit(struct prb_watched *w)
{
	prb_tree_deinit(&w->tree);
}

/** A low one, too, if it is about a result for which nobody works. */
static bool says_enough(const struct prb_finding *f)
{
	return (f->kind != PRB_FINDING_UNKNOWN && f->confidence != PRB_CONFIDENCE_LOW) ||
	       !strcmp(f->rule, "answer");
}

/** What has not changed while nothing ran for a while needs no second reading. */
static bool is_wait(const struct prb_finding *f)
{
	switch (f->kind) {
	case PRB_FINDING_DEADLOCK:
	case PRB_FINDING_ORPHAN:
	case PRB_FINDING_LOCKS:
	case PRB_FINDING_GIL:
	case PRB_FINDING_UNKNOWN:
	case PRB_FINDING_STILL:
	case PRB_FINDING_PEER:
		return true;
	default:
		return false;
	}
}

/** The worst finding about the process that says more than a sign does. */
static const struct prb_finding *find_worst(const struct prb_watched *w,
					    const struct prb_standstill *s)
{
	struct prb_why_one *const *one;

	prb_vec_each (one, &s->why.list)
		for (size_t i = 0; i < (*one)->findings.list.count; i++) {
			const struct prb_finding *f = (*one)->findings.list.items[i];

			if ((*one)->process.pid == w->pid && says_enough(f))
				return f;
		}
	return NULL;
}

/** A verdict is new if it is another one and not weaker, or about more threads. */
static bool is_news(const struct prb_watched *w)
{
	if (!w->reported || !w->verdict)
		return w->verdict;
	if (strcmp(w->reported, w->verdict) != 0)
		return w->strength >= w->reported_strength;
	return w->reported_size < w->size;
}

static void report(struct prb_watched *w, struct prb_watched_news *news, int code)
{
	w->reported = news->verdict = w->verdict;
	w->reported_size = w->size;
	w->reported_strength = w->strength;
	news->code = code;
}

/** What only one reading has found may be passing. */
static void note_finding(struct prb_watched *w, const struct prb_finding *f, bool lasts,
			 struct prb_watched_news *news)
{
	lasts = lasts || (w->verdict && !strcmp(w->verdict, f->rule));
	w->verdict = f->rule;
	w->size = f->tids.count;
	w->strength = f->confidence;
	if (!lasts || !is_news(w))
		return;
	report(w, news, PRB_FINDING_EXIT + (int)f->kind);
	prb_str_puts(&news->sentence, prb_str_text(&f->sentence));
}

static void note_still(struct prb_watched *w, double now, struct prb_watched_news *news)
{
	w->verdict = STILL;
	w->size = news->still.chain.count;
	w->strength = PRB_CONFIDENCE_LOW;
	if (!is_news(w))
		return;
	report(w, news, CODE_STILL);
	prb_str_puts(&news->sentence, "nothing has run for ");
	prb_text_duration(&news->sentence, now - w->moved);
	prb_str_puts(&news->sentence, ": ");
	prb_standstill_put_end(&news->sentence, &news->still);
}

static void note(struct prb_watched *w, double now, double hang, bool still,
		 struct prb_watched_news *news)
{
	const struct prb_finding *f = prb_standstill_fatal(&news->still, w->pid, hang);

	if (f) {
		note_finding(w, f, true, news);
		return;
	}
	f = find_worst(w, &news->still);
	if (f && (!still || f->confidence != PRB_CONFIDENCE_LOW || !news->still.hung)) {
		note_finding(w, f, still && is_wait(f), news);
	} else if (still && news->still.hung) {
		note_still(w, now, news);
	} else {
		w->verdict = NULL;
		w->reported_strength = PRB_CONFIDENCE_LOW;
	}
}

static struct prb_error *read_it(struct prb_watched *w, double now, double hang,
				 struct prb_watched_news *news)
{
	bool still = now - w->moved >= hang, waits, weak;

	PRB_TRY(prb_standstill_read(&w->tree, w->pid, &news->still));
	if (still)
		PRB_TRY(prb_standstill_search(&w->tree, w->pid, &news->still));
	PRB_TRY(prb_standstill_fill_idle(&news->still));
	w->ran = 0;
	w->looked_at = now;
	note(w, now, hang, still, news);
	/* What was found is looked at again soon: whether it lasts. */
	waits = is_news(w);
	weak = w->verdict && w->strength == PRB_CONFIDENCE_LOW;
	w->still = still;
	/* Some rules speak only of waits that are long. */
	w->idle = still && !waits && !weak && now - w->moved >= prb_limit(PRB_LIMIT_LONG);
	w->pause = waits ? hang / 2 : PRB_MIN(2 * PRB_MAX(w->pause, hang), LONGEST);
	w->read_at = now + w->pause;
	if (still && !w->idle && !waits && !weak)
		w->read_at = w->moved + prb_limit(PRB_LIMIT_LONG);
	return NULL;
}

/** True once when the group of the process comes near its limit: the OOM killer may be next. */
static bool comes_near_limit(struct prb_watched *w)
{
	prb_auto_str struct prb_str text = {};
	int64_t limit, used;
	bool before = w->near_limit;

	if (!prb_proc_read(w->pid, "cgroup", &text))
		return false;
	prb_cgroup_memory(prb_str_text(&text), &limit, &used);
	w->near_limit = limit > 0 && (double)used >= NEAR_LIMIT * (double)limit;
	return w->near_limit && !before;
}

static struct prb_error *read_before_kill(struct prb_watched *w, struct prb_watched_news *news)
{
	PRB_TRY(prb_standstill_read(&w->tree, w->pid, &news->still));
	news->verdict = "memory";
	news->code = PRB_FINDING_EXIT + PRB_FINDING_MEMORY;
	prb_str_printf(&news->sentence, "its control group uses over %.0f %% of its memory limit",
		       NEAR_LIMIT * 100);
	return NULL;
}

static void note_moves(struct prb_watched *w, double now)
{
	w->ran += w->tree.ran_seconds;
	if (!w->tree.moved)
		return;
	w->moved = now;
	w->idle = w->still = false;
}

/** What has not run since it was read is as it was, but where more may be found. */
static bool is_due(const struct prb_watched *w, double now, double hang)
{
	if (now - w->moved >= hang && !w->still)
		return true;
	return now >= w->read_at && !w->idle;
}

struct prb_error *prb_watched_look(struct prb_watched *w, double now, double hang, bool memory,
				   bool *gone, struct prb_watched_news *news)
{
	const struct prb_tree_process *process;
	uint64_t began = w->tree.list.count ? w->tree.list.items[0].start_ticks : 0;

	PRB_TRY(prb_tree_glance(&w->tree));
	process = prb_tree_find(&w->tree, w->pid);
	*gone = !process || (began && process->start_ticks != began);
	if (*gone)
		return NULL;
	if (!w->looked_at)
		w->looked_at = w->moved = now;
	if (!w->read_at)
		w->read_at = now + hang;
	note_moves(w, now);
	if (memory && comes_near_limit(w))
		return read_before_kill(w, news);
	if (!is_due(w, now, hang))
		return NULL;
	/* A look at all of its processes, the new ones, too. */
	PRB_TRY(prb_tree_look(&w->tree));
	note_moves(w, now);
	*gone = !prb_tree_find(&w->tree, w->pid);
	if (*gone || !is_due(w, now, hang))
		return NULL;
	if (now - w->moved >= hang || w->ran <= BUSY * (now - w->looked_at))
		return read_it(w, now, hang, news);
	w->ran = 0;
	w->looked_at = now;
	w->read_at = now + hang;
	w->verdict = NULL;
	return NULL;
}

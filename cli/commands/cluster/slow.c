/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing cluster slow`: which rank the others wait for, of a job that moves. */
#include <stdlib.h>

#include "cli/commands/cluster/cluster.h"
#include "command/output.h"
#include "cluster/looks/late.h"
#include "cluster/looks/pace.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"

enum { SHOWN = 5 };

/** A function, and how much more of its time the slow rank is there. */
struct part {
	const char *name;
	double own, others;
};

struct parts {
	PRB_VEC(struct part) list;
};

static int by_difference(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	double dx = x->own - x->others, dy = y->own - y->others;

	return (dx < dy) - (dx > dy);
}

/** Functions that the slow rank spends more of its time in than the others do, most first. */
static struct prb_error *find_parts(const struct prb_round *round, const struct prb_seen *slow,
				    struct parts *ret)
{
	const struct prb_spot *spot;

	prb_vec_each (spot, &slow->pace->spots) {
		struct part part = {spot->name, prb_pace_share(slow->pace, spot->name),
				    prb_pace_others(round, slow, spot->name)};
		struct part *place;

		if (part.own <= part.others)
			continue;
		place = prb_vec_push(&ret->list);
		if (!place)
			return prb_error_nomem();
		*place = part;
	}
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_difference);
	ret->list.count = ret->list.count < SHOWN ? ret->list.count : SHOWN;
	return NULL;
}

static void put_rank(struct prb_str *s, const struct prb_rank *rank)
{
	prb_str_printf(s, "rank %ld (", rank->rank);
	if (rank->host) {
		prb_text_escape(s, rank->host);
		prb_str_puts(s, ", ");
	}
	prb_str_printf(s, "pid %d)", (int)rank->pid);
}

static void put_table(struct prb_str *s, const struct prb_round *round)
{
	const struct prb_seen *seen;

	prb_str_puts(s, "\n  RANK    LOOKS  WAITING\n");
	prb_vec_each (seen, &round->list) {
		if (!seen->pace || !seen->pace->looks)
			prb_str_printf(s, "%6ld        -        -\n", seen->rank->rank);
		else
			prb_str_printf(
				s, "%6ld  %7ld  %5.1f %%\n", seen->rank->rank, seen->pace->looks,
				100.0 * (double)seen->pace->waiting / (double)seen->pace->looks);
	}
}

static void put_text(struct prb_str *s, const struct prb_round *round,
		     const struct prb_slowness *found, const struct prb_late *late,
		     const struct parts *parts)
{
	const struct part *part;

	if (late->rank) {
		prb_late_text(late, s);
		prb_str_puts(s, "\n\n");
	}
	if (!found->slow) {
		prb_str_printf(s,
			       "no rank stands out: the one that waits least is in collectives "
			       "%.0f %% of its time, the others %.0f %%\n",
			       100 * found->waits, 100 * found->others_wait);
		put_table(s, round);
		return;
	}
	prb_str_puts(s, "slow: ");
	put_rank(s, found->slow->rank);
	prb_str_printf(s,
		       " keeps the others: they are in collectives %.0f %% of their time, it "
		       "%.0f %%\n",
		       100 * found->others_wait, 100 * found->waits);
	prb_vec_each (part, &parts->list) {
		prb_str_puts(s, part == parts->list.items ? "  longer      " : "              ");
		prb_text_escape(s, part->name);
		prb_str_printf(s, ": %.0f %% of its time, %.0f %% of theirs\n", 100 * part->own,
			       100 * part->others);
	}
	prb_str_printf(s, "  confidence  %s: %ld look%s\n", found->sure ? "high" : "low",
		       found->looks, found->looks == 1 ? "" : "s");
	prb_str_puts(s, "  wrong if    that rank has another role, and less to exchange\n");
	put_table(s, round);
}

static void put_json(struct prb_str *s, const struct prb_cluster *c,
		     const struct prb_slowness *found, const struct prb_late *late,
		     const struct parts *parts)
{
	struct prb_json json = {s};
	prb_auto_str struct prb_str sentence = {};
	const struct prb_seen *seen;
	const struct part *part;

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "job", c->job->name);
	prb_json_natural(&json, "slow", found->slow ? found->slow->rank->rank : -1);
	prb_json_bool(&json, "sure", found->sure);
	prb_json_real(&json, "waits", found->waits, 4);
	prb_json_real(&json, "others_wait", found->others_wait, 4);
	if (late->rank)
		prb_late_text(late, &sentence);
	prb_json_text(&json, "sentence", late->rank ? prb_str_text(&sentence) : NULL);
	if (late->seconds > 0)
		prb_json_real(&json, "late_ms", 1e3 * late->seconds, 3);
	else
		prb_json_null(&json, "late_ms");
	prb_json_text(&json, "place", late->place.length ? prb_str_text(&late->place) : NULL);
	prb_json_open(&json, "longer", '[');
	prb_vec_each (part, &parts->list) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "function", part->name);
		prb_json_real(&json, "share", part->own, 4);
		prb_json_real(&json, "others", part->others, 4);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_open(&json, "ranks", '[');
	prb_vec_each (seen, &c->last->list) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "rank", seen->rank->rank);
		prb_json_text(&json, "host", seen->rank->host);
		prb_json_integer(&json, "looks", seen->pace ? seen->pace->looks : 0);
		prb_json_integer(&json, "waiting", seen->pace ? seen->pace->waiting : 0);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

static bool any_waits(const struct prb_round *round)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &round->list)
		if (seen->pace && seen->pace->waiting)
			return true;
	return false;
}

static struct prb_error *show(const struct prb_cluster *c, struct parts *parts)
{
	prb_auto_str struct prb_str text = {};
	__attribute__((cleanup(prb_late_deinit))) struct prb_late late = {};
	struct prb_slowness found;

	PRB_TRY(prb_pace_judge(c->last, &found));
	PRB_TRY(prb_late_find(c->last, &found, &late));
	if (found.slow)
		PRB_TRY(find_parts(c->last, found.slow, parts));
	if (c->settings->json)
		put_json(&text, c, &found, &late, parts);
	else
		put_text(&text, c->last, &found, &late, parts);
	return prb_output_lines(&text, c->settings->json);
}

struct prb_error *prb_cluster_slow(struct prb_cluster *c)
{
	struct parts parts = {};
	struct prb_error *err;

	if (c->bundle)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "'slow' is of a job that runs"),
			"a bundle has the last looks only: 'probing %s cluster hang'", c->bundle);
	if (!any_waits(c->last))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_FAILED, "no rank was seen in a collective"),
			"look longer with --duration; 'probing cluster hang' says "
			"what the ranks do");
	err = show(c, &parts);
	prb_vec_free(&parts.list);
	return err;
}

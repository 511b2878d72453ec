/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Ranks that are stopped or have ended. A rank that has ended is to blame only if another rank
 * waits for it. Ranks also end when their training is over; then a rank that still runs keeps the
 * job.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/looks/thread_text.h"
#include "cluster/looks/why.h"
#include "cluster/verdict/verdict_private.h"
#include "cluster/verdict/waiters.h"

/* A profiler stops a thread only briefly. A thread that was stopped in every look is held. */
static bool is_held(const struct prb_seen *seen)
{
	return !seen->gone &&
	       (seen->state == 'T' || seen->state == PRB_SEEN_FROZEN ||
		(seen->state == 't' && seen->state_before == 't') ||
		(seen->state == 'D' && seen->state_before == 'D' && seen->movement == PRB_STILL));
}

static bool has_ended(const struct prb_seen *seen)
{
	return !seen->unasked && (seen->gone || seen->state == 'Z');
}

/** Begins the verdict with the ranks that are blamed; @p first: one of them. */
static void put_absent(const struct prb_evidence *e, const struct prb_seen *first)
{
	struct prb_verdict *v = e->verdict;
	bool several = v->ranks.list.count > 1;

	v->kind = PRB_VERDICT_ABSENT;
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	prb_verdict_put_pid(e, &v->sentence);
	prb_str_putc(&v->sentence, ' ');
	if (!several || first->gone || first->unasked)
		prb_why_put_absence(&v->sentence, first, several);
	else
		prb_str_puts(&v->sentence, "cannot go on");
}

/** Its state, the processor time, and a rank that waits for it. */
static struct prb_error *sign_held(const struct prb_evidence *e, const struct prb_seen *held)
{
	prb_auto_waits struct prb_waits waits = {};
	size_t world = e->job->world_size > 0 ? (size_t)e->job->world_size : 0;
	const struct prb_seen *waiting;
	struct prb_str *s;

	PRB_TRY(prb_signs_add(&e->verdict->signs, PRB_SIGN_STATE, held->rank->rank, &s));
	prb_str_printf(s, "rank %ld ", held->rank->rank);
	prb_why_put_absence(s, held, false);
	PRB_TRY(prb_verdict_sign_still(e, held));
	PRB_TRY(prb_waits_find(e->round, world, &waits));
	waiting = prb_waits_surely_for(&waits, (size_t)(held - e->round->list.items));
	return waiting && waiting != held ? prb_verdict_sign_waiter(e, waiting, true) : NULL;
}

struct prb_error *prb_verdict_find_held(const struct prb_evidence *e, bool *found)
{
	const struct prb_seen *seen, *first = NULL;

	prb_vec_each (seen, &e->round->list) {
		if (!is_held(seen))
			continue;
		first = first ? first : seen;
		PRB_TRY(prb_verdict_blame(e->verdict, seen->rank->rank));
	}
	*found = first;
	if (!first)
		return NULL;
	put_absent(e, first);
	e->verdict->confidence = "high";
	prb_str_puts(&e->verdict->refuted_by, "it goes on: look again");
	return sign_held(e, first);
}

/** How the rank has ended, if anybody but us knows. */
static struct prb_error *sign_end(const struct prb_evidence *e, const struct prb_seen *ended)
{
	struct prb_str *s;

	if (!ended->end_known)
		return NULL;
	PRB_TRY(prb_signs_add(&e->verdict->signs, PRB_SIGN_END, ended->rank->rank, &s));
	prb_str_printf(s, "rank %ld", ended->rank->rank);
	prb_why_put_end(s, ended);
	return NULL;
}

struct prb_error *prb_verdict_find_ended(const struct prb_evidence *e, bool surely, bool *found)
{
	prb_auto_waits struct prb_waits waits = {};
	size_t world = e->job->world_size > 0 ? (size_t)e->job->world_size : 0;
	const struct prb_seen *first = NULL, *waiting = NULL;
	struct prb_verdict *v = e->verdict;
	bool known = true;

	PRB_TRY(prb_waits_find(e->round, world, &waits));
	for (size_t i = 0; i < e->round->list.count; i++) {
		const struct prb_seen *seen = prb_evidence_seen(e, i), *who;

		if (!has_ended(seen))
			continue;
		who = surely ? prb_waits_surely_for(&waits, i) : prb_waits_for(&waits, i);
		if (!who)
			continue;
		first = first ? first : seen;
		waiting = waiting ? waiting : who;
		known &= seen->end_known;
		PRB_TRY(prb_verdict_blame(v, seen->rank->rank));
	}
	*found = first;
	if (!first)
		return NULL;
	put_absent(e, first);
	if (v->ranks.list.count == 1)
		prb_why_put_end(&v->sentence, first);
	prb_str_printf(&v->sentence, "; rank %ld waits for %s in ", waiting->rank->rank,
		       v->ranks.list.count > 1 ? "them" : "it");
	prb_why_put_operation(&v->sentence, waiting);
	PRB_TRY(prb_verdict_sign_waiter(e, waiting, surely));
	PRB_TRY(sign_end(e, first));
	v->confidence = !surely ? "low" : known ? "high" : "medium";
	prb_str_puts(&v->refuted_by,
		     surely ? "the rank has ended as it should, and the others end soon"
			    : "the rank that has ended is not a member of the group that waits");
	return NULL;
}

static void set_guard(struct prb_rank_set *set)
{
	prb_vec_free(&set->list);
}

void prb_verdict_put_ends(const struct prb_evidence *e)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &e->round->list) {
		if (!has_ended(seen) || !seen->end_known)
			continue;
		prb_str_printf(&e->verdict->sentence, "; rank %ld has ended", seen->rank->rank);
		prb_why_put_end(&e->verdict->sentence, seen);
	}
}

/** True if the rank has slept with a limit of time, and woke during the looks: its own clock wakes
 * it. */
static bool wakes(const struct prb_evidence *e, const struct prb_seen *seen)
{
	return seen->main && !seen->collective && seen->main->idle_seconds >= 0 &&
	       !prb_evidence_slept(e, seen) && seen->main->waits_for &&
	       prb_text_ends(seen->main->waits_for, " left");
}

/** Others that are left wake by themselves, again and again. */
static void put_waking(const struct prb_evidence *e, const struct prb_seen *waking)
{
	struct prb_verdict *v = e->verdict;

	v->kind = PRB_VERDICT_MOVES;
	prb_str_printf(&v->sentence, "the job does not hang: rank %ld sleeps and wakes at ",
		       waking->rank->rank);
	prb_put_innermost(&v->sentence, waking->main);
	prb_verdict_put_ends(e);
	prb_str_puts(&v->refuted_by, "it asks again and again for what will never come");
}

struct prb_error *prb_verdict_find_left(const struct prb_evidence *e, bool *found)
{
	__attribute__((cleanup(set_guard))) struct prb_rank_set ended = {};
	const struct prb_seen *seen, *first = NULL, *waking = NULL;
	struct prb_verdict *v = e->verdict;

	prb_vec_each (seen, &e->round->list)
		if (has_ended(seen))
			PRB_TRY(prb_verdict_add(&ended, seen->rank->rank));
	*found = ended.list.count && !prb_evidence_waiting(e);
	if (!*found)
		return NULL;
	v->confidence = "medium";
	prb_vec_each (seen, &e->round->list)
		waking = waking || has_ended(seen) || !wakes(e, seen) ? waking : seen;
	if (waking) {
		put_waking(e, waking);
		return NULL;
	}
	prb_vec_each (seen, &e->round->list) {
		if (!seen->main || has_ended(seen))
			continue;
		first = first ? first : seen;
		PRB_TRY(prb_verdict_blame(v, seen->rank->rank));
	}
	if (!first) {
		v->kind = PRB_VERDICT_ABSENT;
		for (size_t i = 0; i < ended.list.count; i++)
			PRB_TRY(prb_verdict_blame(v, ended.list.items[i]));
		prb_verdict_put_ranks(&v->sentence, &ended);
		prb_str_puts(&v->sentence, ended.list.count == 1 ? " has ended" : " have ended");
		prb_str_puts(&v->refuted_by, "the job has ended as it should");
		return NULL;
	}
	v->kind = PRB_VERDICT_LEFT;
	prb_verdict_put_ranks(&v->sentence, &ended);
	prb_str_puts(&v->sentence, ended.list.count == 1
					   ? " has no process, and nobody waits for it; "
					   : " have no process, and nobody waits for them; ");
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	prb_verdict_put_pid(e, &v->sentence);
	prb_str_puts(&v->sentence,
		     v->ranks.list.count == 1 ? " is left: it " : " are left: the first of them ");
	prb_why_put_reason(&v->sentence, first);
	prb_verdict_put_ends(e);
	prb_str_puts(&v->refuted_by,
		     "the rank that is left does something useful, or the others have "
		     "not ended as they should");
	return NULL;
}

struct prb_error *prb_verdict_find_unasked(const struct prb_evidence *e, bool *found)
{
	const struct prb_seen *seen, *first = NULL;

	prb_vec_each (seen, &e->round->list) {
		if (!seen->unasked)
			continue;
		first = first ? first : seen;
		PRB_TRY(prb_verdict_blame(e->verdict, seen->rank->rank));
	}
	*found = first;
	if (!first)
		return NULL;
	put_absent(e, first);
	e->verdict->confidence = "medium";
	prb_str_puts(&e->verdict->refuted_by,
		     "the job runs on more hosts than were asked: name all of them");
	return NULL;
}

/** True if the rank has a process, of which nothing was read: it begins or ends, mostly. */
static bool is_closed(const struct prb_seen *seen)
{
	return !seen->main && !seen->gone && seen->rank->pid && seen->error;
}

struct prb_error *prb_verdict_find_closed(const struct prb_evidence *e, bool *found)
{
	const struct prb_seen *seen, *closed = NULL, *waiting = NULL;
	struct prb_verdict *v = e->verdict;
	size_t closed_count = 0, waits = 0;

	prb_vec_each (seen, &e->round->list) {
		if (is_closed(seen)) {
			closed = seen;
			closed_count++;
		} else if (seen->main && prb_evidence_waits(seen)) {
			waiting = waiting ? waiting : seen;
			waits++;
		}
	}
	*found = waits && closed_count == 1 && waits + 1 == e->round->list.count;
	if (!*found)
		return NULL;
	v->kind = PRB_VERDICT_LATE;
	v->confidence = "medium";
	PRB_TRY(prb_verdict_blame(v, closed->rank->rank));
	prb_str_printf(&v->sentence, "rank %ld", closed->rank->rank);
	prb_verdict_put_process(&v->sentence, closed->rank);
	prb_str_puts(&v->sentence, " is the only one that does not wait, while all others are in ");
	prb_why_put_operation(&v->sentence, waiting);
	prb_str_puts(&v->sentence, "; it ");
	prb_why_put_absence(&v->sentence, closed, false);
	prb_str_puts(&v->refuted_by, "it waits for them, too, in what cannot be read");
	return prb_verdict_sign_waiter(e, waiting, false);
}

/** True if the rank is on a host that gave no answer. */
static bool is_silent(const struct prb_seen *seen)
{
	return !seen->main && !seen->gone && !seen->rank->pid && seen->error;
}

struct prb_error *prb_verdict_find_unreachable(const struct prb_evidence *e, bool *found)
{
	const struct prb_seen *seen, *waiting = NULL;
	struct prb_verdict *v = e->verdict;
	size_t waits = 0, read = 0;

	prb_vec_each (seen, &e->round->list) {
		read += seen->main != NULL;
		waits += seen->main && prb_evidence_waits(seen);
		if (seen->main && prb_evidence_waits(seen) && !waiting)
			waiting = seen;
		if (is_silent(seen))
			PRB_TRY(prb_verdict_blame(v, seen->rank->rank));
	}
	*found = v->ranks.list.count && read && waits == read;
	if (!*found) {
		v->ranks.list.count = 0;
		return NULL;
	}
	v->kind = PRB_VERDICT_UNREACHABLE;
	v->confidence = "medium";
	prb_str_printf(&v->sentence, "all %zu ranks that answered wait in ", waits);
	prb_why_put_operation(&v->sentence, waiting);
	prb_str_puts(&v->sentence, "; what keeps them is on a host that did not answer: ");
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	prb_str_puts(&v->refuted_by, "these hosts are only slow to answer: ask again, with a "
				     "longer --timeout");
	return NULL;
}

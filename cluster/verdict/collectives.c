/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/looks/call.h"
#include "cluster/looks/operation.h"
#include "cluster/verdict/verdict_private.h"
#include "cluster/verdict/waiters.h"
#include "cluster/looks/why.h"

/** "never entered all_reduce", "never sent what rank 2 receives". */
static void put_missed(struct prb_str *s, const struct prb_seen *late,
		       const struct prb_seen *waiting)
{
	bool still = late->movement == PRB_STILL;

	if (waiting->gpu) {
		prb_str_puts(s, " is not where the others are, in ");
		prb_why_put_operation(s, waiting);
		return;
	}
	if (!prb_waits_for_one(waiting)) {
		prb_str_puts(s, still ? " never entered " : " has not yet entered ");
		prb_why_put_operation(s, waiting);
		return;
	}
	prb_str_puts(s, still ? " never " : " has not yet ");
	prb_str_puts(s, prb_operation_sends(waiting->collective) ? "received" : "sent");
	prb_str_printf(s, " what rank %ld %s", waiting->rank->rank,
		       prb_operation_sends(waiting->collective) ? "sends" : "receives");
}

/** True if it is sure that @p waiting waits for ranks outside. */
static bool is_sure(const struct prb_seen *waiting)
{
	return prb_waits_for_one(waiting) ||
	       (waiting->call && waiting->call->known && !waiting->gpu);
}

/**
 * True if this rank slept in all looks, or a rank that waits in a collective did. Otherwise all
 * ranks may have moved on and come back to the same place.
 */
static bool is_stuck(const struct prb_evidence *e, const struct prb_seen *late)
{
	if (prb_evidence_slept(e, late))
		return true;
	for (size_t i = 0; i < e->round->list.count; i++)
		if (prb_evidence_waits(prb_evidence_seen(e, i)) &&
		    prb_evidence_slept(e, prb_evidence_seen(e, i)))
			return true;
	return false;
}

/** The group whose members differ most in what they called; NULL: in none they do. */
static const struct prb_waiters *find_worst(const struct prb_waits *waits)
{
	const struct prb_waiters *group, *worst = NULL;

	prb_vec_each (group, &waits->groups)
		if (group->difference && (!worst || group->difference > worst->difference))
			worst = group;
	return worst;
}

/**
 * Ranks that wait, and have called different things: either some have gone on to their next call,
 * or they are the ones holding the job up; ranks that moved on are not late.
 */
static void put_doubt(struct prb_verdict *v, const struct prb_waits *waits)
{
	const struct prb_waiters *worst = find_worst(waits);

	if (!worst || worst->difference == PRB_OTHER_PLACE)
		return;
	v->confidence = "low";
	prb_str_printf(&v->sentence, "; or rank %ld has called something else: it is in ",
		       worst->other->rank->rank);
	prb_why_put_call(&v->sentence, worst->other);
	prb_str_printf(&v->sentence, ", while rank %ld is in ", worst->first->rank->rank);
	prb_why_put_call(&v->sentence, worst->first);
}

/** Ranks in no collective that the others wait for. */
static struct prb_error *judge_late(const struct prb_evidence *e, const struct prb_waits *waits,
				    bool *found)
{
	struct prb_verdict *v = e->verdict;
	const struct prb_seen *late = NULL, *waiting = NULL;

	for (size_t i = 0; i < e->round->list.count; i++) {
		const struct prb_seen *seen = prb_evidence_seen(e, i), *who;

		if (seen->entered || seen->collective || !seen->main)
			continue;
		who = prb_waits_for(waits, i);
		if (!who)
			continue;
		if (!late) {
			late = seen;
			waiting = who;
		}
		PRB_TRY(prb_verdict_blame(v, seen->rank->rank));
	}
	*found = late;
	if (!late)
		return NULL;
	v->kind = PRB_VERDICT_LATE;
	v->confidence = late->movement == PRB_STILL && is_sure(waiting) && is_stuck(e, late) &&
					!late->guessed
				? "high"
				: "medium";
	PRB_TRY(prb_verdict_sign_waiter(e, waiting, is_sure(waiting)));
	PRB_TRY(prb_verdict_sign_stack(e, late));
	PRB_TRY(prb_verdict_sign_still(e, late));
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	if (v->ranks.list.count == 1)
		prb_verdict_put_process(&v->sentence, late->rank);
	put_missed(&v->sentence, late, waiting);
	prb_str_puts(&v->sentence, v->ranks.list.count == 1 ? "; it " : "; the first of them ");
	prb_why_put_reason(&v->sentence, late);
	put_doubt(v, waits);
	prb_str_puts(&v->refuted_by,
		     is_sure(waiting) ? "it is only slow, and goes on: look again"
		     : v->ranks.list.count == 1
			     ? "that rank is not a member of the group that waits"
			     : "those ranks are not members of the group that waits");
	return NULL;
}

/** The rank on the same host that has this process. */
static const struct prb_seen *rank_of(const struct prb_evidence *e, const struct prb_seen *from,
				      pid_t pid)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &e->round->list)
		if (pid > 0 && seen != from && seen->rank->pid == pid &&
		    (seen->rank->host == from->rank->host ||
		     (seen->rank->host && from->rank->host &&
		      !strcmp(seen->rank->host, from->rank->host))))
			return seen;
	return NULL;
}

/** The kernel knows who holds it, unless we only guess; and the holder waits for the other one. */
static struct prb_error *sign_ring(const struct prb_evidence *e, const struct prb_seen *first,
				   const struct prb_seen *holds, bool sure)
{
	struct prb_str *s;

	if (sure)
		PRB_TRY(prb_verdict_sign_waiter(e, holds, true));
	if (first->guessed)
		return NULL;
	PRB_TRY(prb_signs_add(&e->verdict->signs, PRB_SIGN_OWNER, first->rank->rank, &s));
	prb_str_printf(s, "rank %ld waits for what process %d holds", first->rank->rank,
		       (int)first->keeper);
	return NULL;
}

/** A rank in no collective waits for what another rank holds, which waits for it in one. */
static struct prb_error *judge_ring(const struct prb_evidence *e, const struct prb_waits *waits,
				    bool *found)
{
	struct prb_verdict *v = e->verdict;
	const struct prb_seen *first = NULL, *holds = NULL;
	bool sure = true;

	for (size_t i = 0; i < e->round->list.count; i++) {
		const struct prb_seen *seen = prb_evidence_seen(e, i), *other;

		other = seen->entered || seen->collective || !seen->main || !seen->holds
				? NULL
				: rank_of(e, seen, seen->keeper);
		if (!other || !prb_evidence_waits(other) || !prb_waits_for(waits, i) ||
		    (holds && holds != other))
			continue;
		first = first ? first : seen;
		holds = other;
		sure &= prb_waits_surely_for(waits, i) && seen->movement == PRB_STILL;
		PRB_TRY(prb_verdict_blame(v, seen->rank->rank));
	}
	*found = first;
	if (!first)
		return NULL;
	v->kind = PRB_VERDICT_CYCLE;
	v->confidence = sure ? "high" : "medium";
	PRB_TRY(sign_ring(e, first, holds, sure));
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	prb_str_puts(&v->sentence, v->ranks.list.count == 1 ? " waits" : " wait");
	prb_str_printf(&v->sentence, " for rank %ld", holds->rank->rank);
	prb_verdict_put_process(&v->sentence, holds->rank);
	prb_str_puts(&v->sentence, ", which waits for ");
	prb_str_puts(&v->sentence, v->ranks.list.count == 1 ? "it in " : "them in ");
	prb_why_put_operation(&v->sentence, holds);
	prb_str_printf(&v->sentence, ": rank %ld ", first->rank->rank);
	prb_why_put_reason(&v->sentence, first);
	PRB_TRY(prb_verdict_blame(v, holds->rank->rank));
	prb_verdict_sort(v);
	prb_str_puts(&v->refuted_by, "one of the waits has a time limit");
	return NULL;
}

static const char *refute(enum prb_difference difference, bool known)
{
	switch (difference) {
	case PRB_OTHER_OPERATION:
	case PRB_OTHER_ROOT:
		return known ? "a rank was between two collectives at that moment: look again"
			     : "the two collectives belong to different process groups";
	case PRB_OTHER_DATA:
		return known ? "the collective takes tensors of different sizes"
			     : "the two calls belong to different process groups";
	default:
		return "both lines are the same step of the program, in two branches of it";
	}
}

/** Members of one group that have called different things: no member can finish. */
static struct prb_error *judge_group(const struct prb_evidence *e, const struct prb_waiters *group)
{
	struct prb_verdict *v = e->verdict;
	const struct prb_seen *most = group->first, *few = group->other;
	size_t like_first = 0, unlike = 0;

	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < e->round->list.count; i++) {
			const struct prb_seen *seen = prb_evidence_seen(e, i);

			if (!group->is_member[i] || !prb_evidence_waits(seen) ||
			    prb_waits_in_pair(seen))
				continue;
			bool like = prb_waits_compare(most, seen) < group->difference;

			if (!pass)
				*(like ? &like_first : &unlike) += 1;
			else if (!like)
				PRB_TRY(prb_verdict_blame(v, seen->rank->rank));
		}
		if (!pass && unlike > like_first) {
			most = group->other;
			few = group->first;
		}
	}
	v->kind = PRB_VERDICT_MISMATCH;
	/* Without the numbers of the calls, one may also be the next call of a rank that went on.
	 */
	v->confidence = group->difference == PRB_OTHER_PLACE || !group->known ? "low" : "medium";
	PRB_TRY(prb_verdict_sign_stack(e, few));
	PRB_TRY(prb_verdict_sign_stack(e, most));
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	prb_str_puts(&v->sentence, v->ranks.list.count == 1 ? " is in " : " are in ");
	prb_why_put_call(&v->sentence, few);
	prb_str_printf(&v->sentence, ", while rank %ld is in ", most->rank->rank);
	prb_why_put_call(&v->sentence, most);
	if (group->difference == PRB_OTHER_PLACE)
		prb_str_puts(&v->sentence, ": one of them may have left out a call");
	prb_str_puts(&v->refuted_by, refute(group->difference, group->known));
	return NULL;
}

static struct prb_error *judge_groups(const struct prb_evidence *e, const struct prb_waits *waits,
				      bool *found)
{
	const struct prb_waiters *worst = find_worst(waits);

	*found = worst;
	return worst ? judge_group(e, worst) : NULL;
}

/** A member of @p group that waits in another one. */
static const struct prb_seen *elsewhere(const struct prb_evidence *e,
					const struct prb_waiters *group)
{
	for (size_t i = 0; i < e->round->list.count; i++) {
		const struct prb_seen *seen = prb_evidence_seen(e, i);

		if (group->is_member[i] && prb_evidence_waits(seen) &&
		    (prb_waits_in_pair(seen) ||
		     !prb_call_same_group(seen->call, group->first->call)))
			return seen;
	}
	return NULL;
}

/** Groups none of which is complete, since members of each wait in another one. */
static struct prb_error *judge_crossed(const struct prb_evidence *e, const struct prb_waits *waits,
				       bool *found)
{
	struct prb_verdict *v = e->verdict;
	const struct prb_waiters *group;
	const struct prb_seen *one = NULL, *other;

	prb_vec_each (group, &waits->groups) {
		other = elsewhere(e, group);
		if (!other || !group->known)
			return NULL;
		if (!one) {
			PRB_TRY(prb_verdict_blame(v, group->first->rank->rank));
			PRB_TRY(prb_verdict_blame(v, other->rank->rank));
			one = other;
		}
	}
	*found = one;
	if (!one)
		return NULL;
	prb_verdict_sort(v);
	group = &waits->groups.items[0];
	v->kind = PRB_VERDICT_MISMATCH;
	v->confidence = "medium";
	PRB_TRY(prb_verdict_sign_stack(e, group->first));
	PRB_TRY(prb_verdict_sign_stack(e, one));
	prb_str_printf(&v->sentence, "process groups wait for each other: rank %ld is in ",
		       group->first->rank->rank);
	prb_why_put_call(&v->sentence, group->first);
	prb_str_printf(&v->sentence, ", while rank %ld, which is a member too, is in ",
		       one->rank->rank);
	prb_why_put_call(&v->sentence, one);
	prb_str_puts(&v->refuted_by, "one of the collectives is slow, not stuck: look again");
	return NULL;
}

struct prb_error *prb_verdict_find_waits(const struct prb_evidence *e, bool *found)
{
	prb_auto_waits struct prb_waits waits = {};
	size_t world = e->job->world_size > 0 ? (size_t)e->job->world_size : 0;

	PRB_TRY(prb_waits_find(e->round, world, &waits));
	PRB_TRY(judge_ring(e, &waits, found));
	if (!*found)
		PRB_TRY(judge_late(e, &waits, found));
	if (!*found)
		PRB_TRY(prb_verdict_find_pairs(e, found));
	if (!*found)
		PRB_TRY(judge_groups(e, &waits, found));
	if (!*found && waits.groups.count)
		PRB_TRY(judge_crossed(e, &waits, found));
	return NULL;
}

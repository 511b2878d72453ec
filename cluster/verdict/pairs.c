/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sends and receives between two ranks that cannot end: each waits for what the other does not do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cluster/looks/call.h"
#include "cluster/looks/operation.h"
#include "cluster/looks/why.h"
#include "cluster/verdict/verdict_private.h"
#include "cluster/verdict/waiters.h"

static const struct prb_seen *peer_of(const struct prb_evidence *e, const struct prb_seen *seen)
{
	long place;

	if (!prb_evidence_waits(seen) || !prb_waits_for_one(seen))
		return NULL;
	place = prb_waits_index(e->round, seen->call->peer);
	return place < 0 ? NULL : prb_evidence_seen(e, (size_t)place);
}

/** True if the two send and receive in one group, with tags that do not fit. */
static bool differ(const struct prb_seen *a, const struct prb_seen *b)
{
	return (a->call->tag >= 0 && b->call->tag >= 0 && a->call->tag != b->call->tag) ||
	       (a->call->known && b->call->known && !prb_call_same_group(a->call, b->call));
}

/** The rank that the one at @p i sends to or receives from, if that does not do its part. */
static long next_of_two(const struct prb_evidence *e, size_t i)
{
	const struct prb_seen *seen = prb_evidence_seen(e, i), *peer;
	long place;

	if (!prb_evidence_waits(seen) || !prb_waits_for_one(seen))
		return -1;
	place = prb_waits_index(e->round, seen->call->peer);
	if (place < 0)
		return -1;
	peer = prb_evidence_seen(e, (size_t)place);
	if (!prb_evidence_waits(peer) || !prb_waits_for_one(peer))
		return -1;
	/* One sends what the other receives: then it is on its way. */
	if (peer->call->peer == seen->rank->rank &&
	    prb_operation_sends(peer->collective) != prb_operation_sends(seen->collective))
		return -1;
	return place;
}

static void put_pair(struct prb_str *s, const struct prb_seen *seen)
{
	prb_str_printf(s, "rank %ld ", seen->rank->rank);
	prb_str_puts(s, prb_operation_sends(seen->collective) ? "sends to" : "receives from");
	prb_str_printf(s, " rank %ld", seen->call->peer);
}

static struct prb_error *tell_circle(const struct prb_evidence *e, size_t first)
{
	struct prb_verdict *v = e->verdict;
	prb_auto_str struct prb_str pairs = {};
	size_t at = first, count = 0;

	do {
		const struct prb_seen *seen = prb_evidence_seen(e, at);

		PRB_TRY(prb_verdict_blame(v, seen->rank->rank));
		if (count++ < 4) {
			prb_str_puts(&pairs, count > 1 ? ", " : "");
			put_pair(&pairs, seen);
		}
		at = (size_t)next_of_two(e, at);
	} while (at != first);
	if (count > 4)
		prb_str_printf(&pairs, ", and so on, %zu ranks in all", count);
	prb_verdict_sort(v);
	v->kind = PRB_VERDICT_MISMATCH;
	v->confidence = "high";
	PRB_TRY(prb_verdict_sign_waiter(e, prb_evidence_seen(e, first), true));
	PRB_TRY(prb_verdict_sign_still(e, prb_evidence_seen(e, first)));
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	prb_str_puts(&v->sentence, count == 1 ? " waits for itself: " : " wait for each other: ");
	prb_str_puts(&v->sentence, prb_str_text(&pairs));
	prb_str_puts(&v->refuted_by, "another thread of a rank does the other part");
	return pairs.failed ? prb_error_nomem() : NULL;
}

/** Ranks that send to or receive from each other in a circle. */
static struct prb_error *judge_circle(const struct prb_evidence *e, bool *found)
{
	size_t count = e->round->list.count;
	prb_auto_free unsigned *visited = calloc(count + 1, sizeof(*visited));

	if (!visited)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++) {
		long at = (long)i;

		while (at >= 0 && !visited[at]) {
			visited[at] = (unsigned)i + 1;
			at = next_of_two(e, (size_t)at);
		}
		if (at >= 0 && visited[at] == (unsigned)i + 1) {
			*found = true;
			return tell_circle(e, (size_t)at);
		}
	}
	return NULL;
}

/** Appends "rank 0 receives from rank 1 (tag 7)". */
static void put_side(struct prb_str *s, const struct prb_seen *seen, bool tag)
{
	put_pair(s, seen);
	if (tag && seen->call->tag >= 0)
		prb_str_printf(s, " with tag %ld", seen->call->tag);
	else if (seen->call->group)
		prb_str_printf(s, " in group %.100s", seen->call->group);
}

/** Begins a verdict on two ranks whose parts do not fit. */
static struct prb_error *blame_two(const struct prb_evidence *e, const struct prb_seen *a,
				   const struct prb_seen *b)
{
	struct prb_verdict *v = e->verdict;

	v->kind = PRB_VERDICT_MISMATCH;
	v->confidence = "medium";
	PRB_TRY(prb_verdict_blame(v, a->rank->rank));
	PRB_TRY(prb_verdict_blame(v, b->rank->rank));
	PRB_TRY(prb_verdict_sign_stack(e, a));
	PRB_TRY(prb_verdict_sign_stack(e, b));
	prb_verdict_sort(v);
	prb_str_puts(&v->refuted_by, "another thread of a rank does the other part");
	return NULL;
}

/** Two ranks send to and receive from each other, with other tags or in other groups. */
static struct prb_error *judge_tags(const struct prb_evidence *e, bool *found)
{
	struct prb_str *s = &e->verdict->sentence;
	const struct prb_seen *seen, *peer;

	prb_vec_each (seen, &e->round->list) {
		peer = peer_of(e, seen);
		if (!peer || peer_of(e, peer) != seen ||
		    prb_operation_sends(seen->collective) ==
			    prb_operation_sends(peer->collective) ||
		    !differ(seen, peer))
			continue;

		bool tag = seen->call->tag != peer->call->tag;

		put_side(s, seen, tag);
		prb_str_puts(s, ", while ");
		put_side(s, peer, tag);
		*found = true;
		return blame_two(e, seen, peer);
	}
	return NULL;
}

/** A rank that sends to @p seen or receives from it, but not the one that it waits for. */
static const struct prb_seen *other_side(const struct prb_evidence *e, const struct prb_seen *seen)
{
	const struct prb_seen *other;

	prb_vec_each (other, &e->round->list)
		if (peer_of(e, other) == seen && peer_of(e, seen) != other &&
		    prb_operation_sends(other->collective) != prb_operation_sends(seen->collective))
			return other;
	return NULL;
}

/** True if @p group, in which a rank waits, has @p seen as a member. */
static bool is_member(const struct prb_waits *waits, const struct prb_evidence *e,
		      const struct prb_seen *inside, const struct prb_seen *seen)
{
	const struct prb_waiters *group;

	prb_vec_each (group, &waits->groups)
		if (prb_call_same_group(group->first->call, inside->call))
			return group->is_member[seen - e->round->list.items];
	return false;
}

/** A rank waits for one that does not do its part, as it waits for the first in a collective. */
static struct prb_error *judge_peer(const struct prb_evidence *e, const struct prb_waits *waits,
				    bool *found)
{
	struct prb_str *s = &e->verdict->sentence;
	const struct prb_seen *seen, *peer, *other;

	prb_vec_each (seen, &e->round->list) {
		peer = peer_of(e, seen);
		if (!peer || !prb_evidence_waits(peer) || prb_waits_in_pair(peer) ||
		    !is_member(waits, e, peer, seen))
			continue;
		put_side(s, seen, true);
		prb_str_puts(s, prb_operation_sends(seen->collective)
					? ", which does not receive: it is in "
					: ", which does not send: it is in ");
		prb_why_put_call(s, peer);
		other = other_side(e, seen);
		if (other) {
			prb_str_puts(s, ", while ");
			put_side(s, other, true);
		}
		*found = true;
		return blame_two(e, seen, other ? other : peer);
	}
	return NULL;
}

/** "rank 0 is in MPI_Recv, called at train.py:3, rank 1 in MPI_Ssend, called at train.py:5" */
static void put_each(const struct prb_evidence *e, struct prb_str *s)
{
	const struct prb_rank_set *ranks = &e->verdict->ranks;
	enum { MOST = 3 };

	for (size_t i = 0; i < ranks->list.count && i < MOST; i++) {
		long place = prb_waits_index(e->round, ranks->list.items[i]);

		if (place < 0)
			continue;
		prb_str_printf(s, i ? ", rank %ld in " : "rank %ld is in ", ranks->list.items[i]);
		prb_why_put_call(s, prb_evidence_seen(e, (size_t)place));
	}
	if (ranks->list.count > MOST)
		prb_str_printf(s, ", and %zu more", ranks->list.count - MOST);
}

/** Ranks send and receive, nobody knows with whom; others wait for all of them. */
static struct prb_error *judge_unknown(const struct prb_evidence *e, const struct prb_waits *waits,
				       bool *found)
{
	struct prb_verdict *v = e->verdict;
	const struct prb_seen *seen, *first = NULL;
	const struct prb_waiters *group = waits->groups.count ? &waits->groups.items[0] : NULL;

	prb_vec_each (seen, &e->round->list) {
		if (!group || !prb_evidence_waits(seen) || !prb_waits_in_pair(seen) ||
		    prb_waits_for_one(seen) || !group->is_member[seen - e->round->list.items])
			continue;
		first = first ? first : seen;
		PRB_TRY(prb_verdict_blame(v, seen->rank->rank));
	}
	*found = first;
	if (!first)
		return NULL;
	v->kind = PRB_VERDICT_MISMATCH;
	v->confidence = "medium";
	put_each(e, &v->sentence);
	prb_str_printf(&v->sentence,
		       "; nobody does the other part with that peer, tag and communicator, and "
		       "rank %ld waits for %s in ",
		       group->first->rank->rank, v->ranks.list.count == 1 ? "it" : "them");
	prb_why_put_operation(&v->sentence, group->first);
	prb_str_puts(&v->refuted_by, "the message is large and still on its way: look again");
	return NULL;
}

struct prb_error *prb_verdict_find_pairs(const struct prb_evidence *e, bool *found)
{
	prb_auto_waits struct prb_waits waits = {};
	size_t world = e->job->world_size > 0 ? (size_t)e->job->world_size : 0;

	PRB_TRY(prb_waits_find(e->round, world, &waits));
	PRB_TRY(judge_tags(e, found));
	if (!*found)
		PRB_TRY(judge_circle(e, found));
	if (!*found)
		PRB_TRY(judge_peer(e, &waits, found));
	if (!*found)
		PRB_TRY(judge_unknown(e, &waits, found));
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/verdict/waiters.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "cluster/looks/call.h"
#include "cluster/looks/operation.h"
#include "cluster/verdict/verdict_private.h"
#include "cluster/looks/why.h"

enum { MAX_RANK = 1 << 20 };

void prb_waits_deinit(struct prb_waits *waits)
{
	struct prb_waiters *group;

	prb_vec_each (group, &waits->groups)
		free(group->is_member);
	prb_vec_free(&waits->groups);
}

/** The first place in the round whose rank is at least @p rank. */
static size_t lower_bound(const struct prb_round *round, long rank)
{
	size_t from = 0, to = round->list.count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (round->list.items[middle].rank->rank < rank)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

long prb_waits_index(const struct prb_round *round, long rank)
{
	size_t place = lower_bound(round, rank);

	return place < round->list.count && round->list.items[place].rank->rank == rank
		       ? (long)place
		       : -1;
}

size_t prb_waits_note_members(const struct prb_round *round, const char *members, bool *ret)
{
	size_t size = 0;

	for (const char *at = members; *at;) {
		char *end;
		long from = strtol(at, &end, 10), to = from;

		if (end == at || from < 0)
			return size;
		if (*end == '-')
			to = strtol(end + 1, &end, 10);
		if (to < from || to > MAX_RANK)
			return size;
		size += (size_t)(to - from + 1);
		for (size_t i = lower_bound(round, from);
		     i < round->list.count && round->list.items[i].rank->rank <= to; i++)
			ret[i] = true;
		at = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			return size;
	}
	return size;
}

static struct prb_error *group_of(struct prb_waits *waits, size_t world,
				  const struct prb_seen *seen, struct prb_waiters **ret)
{
	const char *members = seen->call ? seen->call->members : NULL;
	struct prb_waiters *group;

	prb_vec_each (group, &waits->groups) {
		*ret = group;
		if (prb_call_same_group(group->first->call, seen->call))
			return NULL;
	}
	*ret = group = prb_vec_push(&waits->groups);
	if (!group)
		return prb_error_nomem();
	*group = (struct prb_waiters){.members = members, .known = true, .first = seen};
	group->is_member = calloc(waits->round->list.count + 1, sizeof(*group->is_member));
	if (!group->is_member)
		return prb_error_nomem();
	if (members) {
		group->size = prb_waits_note_members(waits->round, members, group->is_member);
		return NULL;
	}
	memset(group->is_member, true, waits->round->list.count);
	group->size = PRB_MAX(world, waits->round->list.count);
	return NULL;
}

bool prb_waits_is_uniform(const char *collective)
{
	static const char *const names[] = {"all_reduce", "broadcast", "reduce",
					    "all_gather", "gather",    "scatter"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		if (!strcmp(collective, names[i]))
			return true;
	return false;
}

enum prb_difference prb_waits_compare(const struct prb_seen *a, const struct prb_seen *b)
{
	const struct prb_call *x = a->call, *y = b->call;

	/* Work on a GPU does not show where the program is. */
	if (a->gpu || b->gpu)
		return PRB_SAME_CALL;
	/* A C++ function does not show its operation. */
	if (!a->unnamed && !b->unnamed && strcmp(a->collective, b->collective) != 0)
		return PRB_OTHER_OPERATION;
	if (a->unnamed == b->unnamed && x && y) {
		if (x->peer >= 0 && y->peer >= 0 && x->peer != y->peer)
			return PRB_OTHER_ROOT;
		if (x->data && y->data && prb_waits_is_uniform(a->collective) &&
		    strcmp(x->data, y->data) != 0)
			return PRB_OTHER_DATA;
	}
	return prb_call_same_place(a, b) ? PRB_SAME_CALL : PRB_OTHER_PLACE;
}

bool prb_waits_for_one(const struct prb_seen *seen)
{
	return seen->call && seen->call->peer >= 0 && !seen->unnamed &&
	       prb_operation_is_between_two(seen->collective);
}

bool prb_waits_in_pair(const struct prb_seen *seen)
{
	return !seen->unnamed && prb_operation_is_between_two(seen->collective);
}

static struct prb_error *add(struct prb_waits *waits, size_t world, const struct prb_seen *seen)
{
	struct prb_waiters *group;
	enum prb_difference difference;

	PRB_TRY(group_of(waits, world, seen, &group));
	group->inside++;
	group->known &= seen->call && seen->call->known;
	difference = prb_waits_compare(group->first, seen);
	if (difference > group->difference) {
		group->difference = difference;
		group->other = seen;
	}
	return NULL;
}

struct prb_error *prb_waits_find(const struct prb_round *round, size_t world, struct prb_waits *ret)
{
	const struct prb_seen *seen;

	ret->round = round;
	prb_vec_each (seen, &round->list)
		if (prb_evidence_waits(seen) && !prb_waits_in_pair(seen))
			PRB_TRY(add(ret, world, seen));
	return NULL;
}

/** A rank that sends to the one at @p index, or receives from it. */
static const struct prb_seen *peer_of(const struct prb_waits *waits, size_t index)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &waits->round->list)
		if (prb_evidence_waits(seen) && prb_waits_for_one(seen) &&
		    seen->call->peer == waits->round->list.items[index].rank->rank)
			return seen;
	return NULL;
}

/** A rank that sends or receives, and it is not known to or from whom. */
static const struct prb_seen *anyone(const struct prb_waits *waits)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &waits->round->list)
		if (prb_evidence_waits(seen) && prb_waits_in_pair(seen) && !prb_waits_for_one(seen))
			return seen;
	return NULL;
}

const struct prb_seen *prb_waits_for(const struct prb_waits *waits, size_t index)
{
	const struct prb_waiters *group;
	const struct prb_seen *seen;

	prb_vec_each (group, &waits->groups)
		if (group->is_member[index])
			return group->first;
	seen = peer_of(waits, index);
	return seen ? seen : anyone(waits);
}

const struct prb_seen *prb_waits_surely_for(const struct prb_waits *waits, size_t index)
{
	const struct prb_waiters *group;

	prb_vec_each (group, &waits->groups)
		if (group->is_member[index] && group->known)
			return group->first;
	return peer_of(waits, index);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the parts that judge a job. One thread at a time. Internal to cluster/verdict/.
 */
#ifndef PRB_CLUSTER_VERDICT_VERDICT_PRIVATE_H
#define PRB_CLUSTER_VERDICT_VERDICT_PRIVATE_H

#include "cluster/reach/ras.h"
#include "cluster/verdict/verdict.h"

/** The evidence of each rank from the looks at a job. */
struct prb_evidence {
	const struct prb_job *job;
	const struct prb_round *round; /**< the last look */
	const char *bundle;	       /**< where it was saved, or NULL */
	const struct prb_reach *reach; /**< to its hosts, or NULL */
	struct prb_verdict *verdict;
};

static inline const struct prb_seen *prb_evidence_seen(const struct prb_evidence *e, size_t i)
{
	return &e->round->list.items[i];
}

/** True if the rank waits in a collective, or for another rank. */
static inline bool prb_evidence_waits(const struct prb_seen *seen)
{
	return seen->collective && seen->movement != PRB_MOVES;
}

/** True if the main thread has slept for nearly all the time of the looks, or longer. */
static inline bool prb_evidence_slept(const struct prb_evidence *e, const struct prb_seen *seen)
{
	return seen->main && seen->main->idle_seconds > 0.7 * e->round->span;
}

/** How many ranks wait in a collective, or for another rank. */
size_t prb_evidence_waiting(const struct prb_evidence *e);

/** Adds a rank to a set. */
struct prb_error *prb_verdict_add(struct prb_rank_set *set, long rank) PRB_MUST_CHECK;

/** Appends " (pid 4242)" if one rank is blamed that has a process. */
void prb_verdict_put_pid(const struct prb_evidence *e, struct prb_str *s);

/** Appends "; rank 1 has ended: killed by SIGKILL" for each rank of which that is known. */
void prb_verdict_put_ends(const struct prb_evidence *e);

/** Appends "rank 3" or "ranks 0-2,5". */
void prb_verdict_put_ranks(struct prb_str *s, const struct prb_rank_set *set);

/** Adds a rank to those to blame. */
struct prb_error *prb_verdict_blame(struct prb_verdict *verdict, long rank) PRB_MUST_CHECK;

/**
 * Adds the sign that @p waiting gives by where it waits; @p member: of a group that is known to
 * have the ranks that are named.
 */
struct prb_error *prb_verdict_sign_waiter(const struct prb_evidence *e,
					  const struct prb_seen *waiting,
					  bool member) PRB_MUST_CHECK;

/** Adds the sign that the stacks of a rank give that is named: where it is, or that it moves. */
struct prb_error *prb_verdict_sign_stack(const struct prb_evidence *e,
					 const struct prb_seen *seen) PRB_MUST_CHECK;

/** Adds what the kernel counts of a rank that does not move; nothing of others. */
struct prb_error *prb_verdict_sign_still(const struct prb_evidence *e,
					 const struct prb_seen *seen) PRB_MUST_CHECK;

/** Puts the ranks to blame into their order. */
void prb_verdict_sort(struct prb_verdict *verdict);

/** Appends " (pid 4242)" or " (node-5, pid 4242)". */
void prb_verdict_put_process(struct prb_str *s, const struct prb_rank *rank);

/** Ranks that cannot go on whatever the others do: stopped, or asleep in the kernel. */
struct prb_error *prb_verdict_find_held(const struct prb_evidence *e, bool *found) PRB_MUST_CHECK;

/** Ranks that have ended and that another rank waits for, @p surely or perhaps. */
struct prb_error *prb_verdict_find_ended(const struct prb_evidence *e, bool surely,
					 bool *found) PRB_MUST_CHECK;

/** Ranks have ended and no rank waits for them: names the ranks that still run, and why. */
struct prb_error *prb_verdict_find_left(const struct prb_evidence *e, bool *found) PRB_MUST_CHECK;

/** The only rank that does not wait cannot be read. */
struct prb_error *prb_verdict_find_closed(const struct prb_evidence *e, bool *found) PRB_MUST_CHECK;

/** Ranks without a process that may be on a host that was not asked. */
struct prb_error *prb_verdict_find_unasked(const struct prb_evidence *e,
					   bool *found) PRB_MUST_CHECK;

/**
 * Judges by the numbers of collectives that flight recorders have. *found: there is a verdict, also
 * with evidence for it.
 */
struct prb_error *prb_verdict_find_flight(const struct prb_evidence *e, bool *found) PRB_MUST_CHECK;

/**
 * Judges which rank waits for which: ranks that others wait for, and that wait for none, are late;
 * ranks that wait for each other have called different things. *found: there is a verdict.
 */
struct prb_error *prb_verdict_find_waits(const struct prb_evidence *e, bool *found) PRB_MUST_CHECK;

/** Judges sends and receives that do not fit together: circles, other tags, other peers. */
struct prb_error *prb_verdict_find_pairs(const struct prb_evidence *e, bool *found) PRB_MUST_CHECK;

/**
 * All ranks that were read wait, and the others are on hosts that have not answered: what keeps the
 * job is there.
 */
struct prb_error *prb_verdict_find_unreachable(const struct prb_evidence *e,
					       bool *found) PRB_MUST_CHECK;

/**
 * Adds what NCCL's RAS service said @p before and @p after the looks to the evidence. It confirms
 * or doubts that a rank is late, and names one where the stacks name none.
 */
struct prb_error *prb_verdict_weigh_ras(const struct prb_evidence *e, const struct prb_ras *before,
					const struct prb_ras *after) PRB_MUST_CHECK;

#endif

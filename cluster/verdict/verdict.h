/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Judges a job from several looks at its ranks: whether it hangs, which rank is to blame, and
 * how sure that is.
 *
 * Judged in this order: a rank is stopped, or sleeps in the kernel; a rank has ended, and others
 * surely wait for it; ranks move, so the job
 * does not hang; threads of a rank that is in no collective wait for each other; ranks in no
 * collective that others wait for; ranks that wait for each other; the calls of all ranks fit
 * together, and nothing on the hosts shows why they hang. If only ranks of hosts that did not
 * answer remain, the culprit is there. A rank that has ended, and that nobody surely waits for, is
 * blamed after all others. Never a name stated as certain that the evidence does not support: a
 * verdict has its evidence, its confidence and what would refute it.
 *
 * Threading: one thread at a time. Texts are the verdict's; they are escaped.
 */
#ifndef PRB_CLUSTER_VERDICT_VERDICT_H
#define PRB_CLUSTER_VERDICT_VERDICT_H

#include "base/error.h"
#include "base/str.h"
#include "cluster/looks/seen.h"
#include "cluster/reach/reach.h"
#include "cluster/jobs/rank_set.h"
#include "cluster/verdict/signs.h"

enum prb_verdict_kind {
	PRB_VERDICT_MOVES,    /**< not hung: ranks make progress */
	PRB_VERDICT_ABSENT,   /**< a rank is gone, stopped or asleep in the kernel */
	PRB_VERDICT_MISMATCH, /**< ranks are in different collectives */
	PRB_VERDICT_LATE,     /**< ranks never entered the collective in which others wait */
	PRB_VERDICT_CYCLE,    /**< threads of a rank wait for each other */
	PRB_VERDICT_DEVICE,   /**< all are in the same collective: device or network */
	PRB_VERDICT_UNKNOWN,  /**< nothing moves, and nothing says why */
	PRB_VERDICT_LEFT,     /**< ranks have ended, and nobody waits for them; others have not */
	PRB_VERDICT_UNREACHABLE, /**< all that answered wait; the rest is on silent hosts */
};

struct prb_verdict {
	enum prb_verdict_kind kind;
	struct prb_rank_set ranks; /**< to blame; empty where none is */
	struct prb_str sentence;   /**< one sentence */
	struct prb_str evidence;   /**< lines, each ended by a line feed */
	struct prb_signs signs;	   /**< that agree on it, by their source */
	struct prb_str rests_on;   /**< what was read, and what was not */
	const char *confidence;	   /**< "high", "medium", "low"; static */
	struct prb_str refuted_by; /**< what would show that it is wrong */
	struct prb_str next;	   /**< a command, or "" */
};

/** "late", "device", …: the names that docs/cluster.md has. Static. */
const char *prb_verdict_name(enum prb_verdict_kind kind);

/**
 * @p round: the last of several looks at @p job, in which movements are noted. @p bundle: where it
 * is saved, for the command to go on with; NULL: the job still runs, and @p reach leads to it. @p
 * ras: what NCCL's RAS service says after the looks, or NULL; what it said before is with @p reach.
 */
struct prb_error *prb_verdict_find(const struct prb_job *job, const struct prb_round *round,
				   const char *bundle, const struct prb_reach *reach,
				   const struct prb_ras *ras,
				   struct prb_verdict *ret) PRB_MUST_CHECK;
void prb_verdict_deinit(struct prb_verdict *verdict);
#define prb_auto_verdict __attribute__((cleanup(prb_verdict_deinit)))

#endif

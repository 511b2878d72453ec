/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The findings about several processes in one list, the worst first.
 *
 * Threading: none of its own. Findings are borrowed.
 */
#ifndef PRB_JUDGE_RANKING_H
#define PRB_JUDGE_RANKING_H

#include "judge/finding.h"

struct prb_ranked {
	const struct prb_finding *finding;
	const void *owner; /**< the caller's: what the finding is about */
	pid_t pid;	   /**< 0: a file */
};

/** Starts as {}. */
struct prb_ranking {
	PRB_VEC(struct prb_ranked) list;
};

void prb_ranking_deinit(struct prb_ranking *ranking);
#define prb_auto_ranking __attribute__((cleanup(prb_ranking_deinit)))

/** Adds all findings about one process or file. */
struct prb_error *prb_ranking_add(struct prb_ranking *ranking, const struct prb_findings *findings,
				  const void *owner, pid_t pid) PRB_MUST_CHECK;
/** Sorts the list; findings with the same words stand together. */
void prb_ranking_sort(struct prb_ranking *ranking);

/** Counts the findings after number @p first with the same words, about others. */
size_t prb_ranking_same(const struct prb_ranking *ranking, size_t first);

#endif

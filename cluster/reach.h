/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How probing is run on the other machines of a job.
 *
 * ssh is the user's own, with its configuration, keys and agent; it asks for nothing (BatchMode).
 *
 * Threading: any thread.
 */
#ifndef PRB_CLUSTER_REACH_H
#define PRB_CLUSTER_REACH_H

#include "base/error.h"
#include "cluster/gather.h"

/** Gives @p answer the words that run "probing WORDS…" at its host. @p words ends with NULL. */
struct prb_error *prb_reach(struct prb_answer *answer, const char *const *words) PRB_MUST_CHECK;

#endif

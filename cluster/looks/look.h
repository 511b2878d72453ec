/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file One look at the ranks of a job, from outside. No rank waits for another one's reading, and
 * none is paused but for the moment that a dump takes of a running thread.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_LOOKS_LOOK_H
#define PRB_CLUSTER_LOOKS_LOOK_H

#include <stdbool.h>

#include "base/error.h"
#include "cluster/jobs/job.h"
#include "cluster/looks/seen.h"

void prb_watch_deinit(struct prb_watch *watch);

/**
 * Looks at all ranks of @p job once; with @p native, at the C stacks of all threads too. The @p
 * last look is closer: at the workers that data loaders wait for, and at the arguments of
 * collectives. @p watches: one for each rank, or NULL; ranks that cannot be read have none
 * afterwards.
 */
struct prb_error *prb_round_make(const struct prb_job *job, bool native, bool last,
				 struct prb_watch *watches, struct prb_round *ret) PRB_MUST_CHECK;
void prb_round_deinit(struct prb_round *round);
#define prb_auto_round __attribute__((cleanup(prb_round_deinit)))

/** Looks at the main thread only, and at no worker. @p watch has a target. */
struct prb_error *prb_look_brief(struct prb_watch *watch, struct prb_seen *seen) PRB_MUST_CHECK;

/** Frees what it owns. */
void prb_seen_deinit(struct prb_seen *seen);

/** Sets `main`, `collective` and `caller` from the dump, which has threads. */
void prb_seen_find(struct prb_seen *seen);

#endif

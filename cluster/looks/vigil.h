/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Looks at a job again and again, for as long as it runs, and so cheaply that nobody notices:
 * no thread is stopped, and only the Python stack of each main thread is read. What it finds is a
 * suspicion, for others to judge (cluster/verdict/).
 *
 * A rank moves if its stack has changed, or the integers among the variables of its functions; if
 * it reads or writes files; or if a child of it computes. A rank waits if it is in a collective, or
 * computes at one place: MPI and CUDA wait so. Ranks that meet for the first time do not count, as
 * the others may still start.
 *
 * Threading: one thread at a time. A vigil borrows its job.
 */
#ifndef PRB_CLUSTER_LOOKS_VIGIL_H
#define PRB_CLUSTER_LOOKS_VIGIL_H

#include <stdbool.h>

#include "base/error.h"
#include "cluster/looks/seen.h"

enum { PRB_VIGIL_RESTS = 64, PRB_VIGIL_WINDOW = 50 };

struct prb_vigil_rank;

struct prb_vigil {
	const struct prb_job *job;
	struct prb_watch *watches;
	struct prb_vigil_rank *ranks;
	double hang;		       /**< seconds that ranks may wait in any case */
	double rests[PRB_VIGIL_RESTS]; /**< the last ones: seconds between two moves */
	size_t rest_count;
	double last;  /**< when it was looked at last; 0: never */
	size_t looks; /**< in this window, for prb_vigil_slow() */
};

/** @p hang <= 0: 60 s. */
struct prb_error *prb_vigil_init(const struct prb_job *job, double hang,
				 struct prb_vigil *ret) PRB_MUST_CHECK;
void prb_vigil_deinit(struct prb_vigil *vigil);

/** Looks once; *gone: no rank is left. Ranks that cannot be read are left out. */
struct prb_error *prb_vigil_look(struct prb_vigil *vigil, bool *gone) PRB_MUST_CHECK;

/** How long the ranks may wait: `hang`, or five times their median rest. */
double prb_vigil_limit(const struct prb_vigil *vigil);

/** For how many seconds no rank has moved, and how long one has waited; 0: none waits. */
void prb_vigil_rests(const struct prb_vigil *vigil, double *still, double *waited);

/** True if that is too long, for one that may wait @p limit seconds. */
bool prb_vigil_is_too_long(double still, double waited, double limit);

/** True if ranks have waited for too long; *waited: so many seconds. */
bool prb_vigil_is_suspicious(const struct prb_vigil *vigil, double *waited);

/** True if a rank is in a collective, so that a job that does not move hangs. */
bool prb_vigil_waits(const struct prb_vigil *vigil);

/** True if any rank has moved at the last look. */
bool prb_vigil_moves(const struct prb_vigil *vigil);

/**
 * The index of a rank that the others have waited for at most of the last PRB_VIGIL_WINDOW looks,
 * while it waited at few of them; -1: there is none, or the window is not over. Begins a new one.
 */
long prb_vigil_slow(struct prb_vigil *vigil);

/** Forgets how long ranks have waited: a judge has found that the job moves. */
void prb_vigil_forget(struct prb_vigil *vigil);

#endif

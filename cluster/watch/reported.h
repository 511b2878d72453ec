/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Jobs as daemons of several machines report them (cluster/watch/reports.h): which hosts have
 * ranks of a job, whether the job is suspicious as a whole, and what its hosts have seen, put
 * together as a bundle that `cluster hang` judges.
 *
 * A host that has reported nothing for too long is silent. Its ranks may run: they are not blamed.
 *
 * Threading: one thread at a time. All texts are other machines' words: bounded, not escaped.
 */
#ifndef PRB_CLUSTER_WATCH_REPORTED_H
#define PRB_CLUSTER_WATCH_REPORTED_H

#include <time.h>

#include "base/error.h"
#include "base/vec.h"
#include "cluster/jobs/rank_set.h"
#include "cluster/watch/incident.h"
#include "cluster/watch/reports.h"

/** A host, as its last pulse says. */
struct prb_reporter {
	char name[PRB_REPORT_NAME]; /**< of its files, without their ends */
	char *host;
	struct timespec written; /**< of the file */
	double seen;		 /**< monotonic seconds, when that was found */
	double still, waited, limit;
	bool waits; /**< a rank is in a collective */
	bool ended; /**< all its ranks are gone */
	bool there; /**< it has a file */
	struct prb_rank_set ranks;
};

struct prb_reported {
	char key[PRB_REPORT_NAME];
	char *job;
	uid_t uid;
	long world_size; /**< -1: unknown */
	PRB_VEC(struct prb_reporter) hosts;
	double asked;	   /**< monotonic seconds, when looks were asked for; 0: they are not */
	double not_before; /**< then the next time, at the earliest */
	bool hung;
	struct prb_incident incident; /**< while it is hung */
};

struct prb_reported_list {
	PRB_VEC(struct prb_reported) list;
};
void prb_reported_deinit(struct prb_reported_list *jobs);

/** Reads the pulses that are new. Files that are no reports, or an hour old, are removed. */
struct prb_error *prb_reported_read(struct prb_reported_list *jobs, int folder,
				    double now) PRB_MUST_CHECK;

/** The job of that name and user, or NULL. */
struct prb_reported *prb_reported_find(struct prb_reported_list *jobs, const char *job, uid_t uid);

/** True if a host has reported the job within @p patience seconds, and its ranks run. */
bool prb_reported_runs(const struct prb_reported *job, double patience, double now);

/** True if the ranks of all hosts together wait for too long; *waited: seconds. */
bool prb_reported_is_suspicious(const struct prb_reported *job, double patience, double now,
				double *waited);

/** True if a rank is in a collective, so that a job that does not move hangs. */
bool prb_reported_waits(const struct prb_reported *job);

/** True if a rank has moved since the last pulse but one. */
bool prb_reported_moves(const struct prb_reported *job, double patience, double rest, double now);

/** True if each host that is not silent has sent its look. */
bool prb_reported_is_seen(const struct prb_reported *job, int folder, double patience, double now);

/** Writes a bundle of the looks to @p fd; hosts without one are named in it, with the reason. */
struct prb_error *prb_reported_save(const struct prb_reported *job, int folder, double patience,
				    double now, int fd) PRB_MUST_CHECK;

#endif

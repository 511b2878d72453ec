/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the parts of a daemon that watches jobs: those of this machine, and those that
 * other machines report to it. Internal to cli/commands/cluster/. */
#ifndef PRB_CLI_COMMANDS_CLUSTER_WATCH_JOBS_PRIVATE_H
#define PRB_CLI_COMMANDS_CLUSTER_WATCH_JOBS_PRIVATE_H

#include "cli/commands/cluster/watch_jobs.h"

#include <stdbool.h>

#include "base/vec.h"
#include "cluster/jobs/job.h"
#include "cluster/looks/vigil.h"
#include "cluster/watch/incident.h"
#include "cluster/watch/reported.h"

/** Size of the name of a saved bundle. */
enum { PRB_WATCHING_NAME = 64 };

/** A job of this machine that is watched. */
struct prb_watched {
	struct prb_vigil vigil; /**< of `job` */
	struct prb_job *job;	/**< of the last list of jobs */
	bool hung, there;
	bool reports;		      /**< the daemon that judges has it */
	double next_pulse;	      /**< then it is reported again, in monotonic seconds */
	struct prb_incident incident; /**< while it is hung */
	long slow;		      /**< rank that the others wait for; -1 */
};

struct prb_watching {
	const struct prb_watch_jobs_options *options;
	double hang, rest; /**< seconds that ranks may wait; between two looks */
	struct prb_jobs jobs;
	PRB_VEC(struct prb_watched) list;
	struct prb_reported_list reported;
	int folder, saved; /**< the state's, and "jobs" in it */
	int reports;	   /**< where reports of others are kept; -1: none are taken */
	char *path;
	char host[256];
	bool changed;	    /**< the metrics */
	bool unreachable;   /**< the last report could not be sent */
	double next_report; /**< then the next one is, in monotonic seconds */
};

/** Says "job NAME" and @p what in the log. */
void prb_watching_say(const char *job, const char *what);

/** *ret: the path of a new bundle of a job, for the caller to free. The oldest ones are removed. */
struct prb_error *prb_watching_name_bundle(const struct prb_watching *w, const char *job,
					   char **ret) PRB_MUST_CHECK;

/** Says that a job hangs, in the log and to the webhook. */
struct prb_error *prb_watching_tell(const struct prb_watching *w, const char *job,
				    const struct prb_incident *incident, double waited,
				    const char *saved) PRB_MUST_CHECK;

/** Reports a job that has ranks elsewhere; *elsewhere: another look than ours judges it. */
struct prb_error *prb_watching_report(struct prb_watching *w, struct prb_watched *one,
				      bool *elsewhere) PRB_MUST_CHECK;

/** Reports that the ranks of a job have ended, if that succeeds. */
void prb_watching_report_end(struct prb_watching *w, const struct prb_watched *one);

/** Judges the jobs that are reported here. */
struct prb_error *prb_watching_judge_reported(struct prb_watching *w) PRB_MUST_CHECK;

#endif

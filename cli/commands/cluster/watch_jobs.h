/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Watches all jobs of this machine for as long as it runs, and reports those that hang and
 * ranks that others wait for: to the log, to a file of metrics, and to a webhook. What hangs is
 * saved first, in the folder "jobs" of the state.
 */
#ifndef PRB_CLI_COMMANDS_CLUSTER_WATCH_JOBS_H
#define PRB_CLI_COMMANDS_CLUSTER_WATCH_JOBS_H

#include <stdbool.h>

#include "base/error.h"

struct prb_watch_jobs_options {
	const char *state;   /**< folder, or NULL: the usual one (clickhouse/state.h) */
	const char *webhook; /**< that verdicts are posted to; NULL: none */
	const char *hosts;   /**< that are asked, too, if a job runs on several; NULL: none */
	const char *report; /**< gateway whose daemon judges jobs of several machines; NULL: none */
	const char *token_file; /**< of its token; NULL: $PROBING_AUTH_TOKEN */
	bool judges;		/**< jobs that others report: this daemon serves */
	const char *host;	/**< what this machine is called; NULL: its name */
	double hang;		/**< seconds that ranks may wait, at least; 0: 60 */
};

/** The file of metrics, in the folder of the state; and the variable by which the part of the
 * daemon that serves /metrics knows its path. */
#define PRB_WATCH_JOBS_METRICS "jobs.prom"
#define PRB_WATCH_JOBS_VARIABLE "PROBING_JOBS_METRICS"

/** Returns only with an error. */
struct prb_error *prb_watch_jobs_run(const struct prb_watch_jobs_options *options) PRB_MUST_CHECK;

#endif

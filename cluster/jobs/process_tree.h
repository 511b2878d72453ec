/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Processes that work together without ranks: a program and its workers, as those of
 * multiprocessing, concurrent.futures, Celery, Dask and Ray are.
 *
 * Threading: any thread. The job owns its texts.
 */
#ifndef PRB_CLUSTER_JOBS_PROCESS_TREE_H
#define PRB_CLUSTER_JOBS_PROCESS_TREE_H

#include "cluster/jobs/job.h"

/**
 * Makes a job of @p pid and those of its descendants that run Python; their "ranks" are their
 * places in the list. Ray's own daemons and its idle workers are left out. *ret stays without ranks
 * if that process does not run Python.
 */
struct prb_error *prb_job_of_processes(pid_t pid, struct prb_job *ret) PRB_MUST_CHECK;

#endif

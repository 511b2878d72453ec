/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Judges a program and its workers (cluster/jobs/process_tree.h): which of them has work that
 * the others wait for. Workers that wait for work, and processes that wait for a worker, are known
 * by the functions of multiprocessing, concurrent.futures, Ray, Dask and Celery on their stacks.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_VERDICT_PROCESSES_H
#define PRB_CLUSTER_VERDICT_PROCESSES_H

#include "cluster/verdict/verdict.h"

/** As prb_verdict_find(), of a job of processes; `ranks` are the pids to blame. */
struct prb_error *prb_verdict_find_processes(const struct prb_round *round,
					     struct prb_verdict *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What a process is called beside its pid, in metrics. */
#ifndef PRB_GATEWAY_METRICS_PROCESS_H
#define PRB_GATEWAY_METRICS_PROCESS_H

#include <sys/types.h>

#include "base/error.h"
#include "target/proc/process.h"
#include "target/target.h"

/**
 * Texts of it, without control characters and secrets, of at most 100 characters: a process can
 * choose all but the user. NULL: unknown. Starts as {}.
 */
struct prb_metric_process {
	pid_t pid;
	char *user;	   /**< its name, or number */
	char *script;	   /**< "train.py", "-m http.server", "gunicorn" */
	char *executable;  /**< name of the file */
	char *job;	   /**< of which it is a rank: "torch 10.0.0.7:29500" */
	long rank;	   /**< -1: none, as far as its environment says */
	unsigned readings; /**< so far */
};

/**
 * Reads them anew, but its user and its job only once: @p ret has the pid, and rank -1 at first.
 * @p target may be NULL. What cannot be read stays unknown. PRB_ERROR_NOMEM.
 */
struct prb_error *prb_metric_process_read(const struct prb_process *process,
					  struct prb_target *target,
					  struct prb_metric_process *ret) PRB_MUST_CHECK;
void prb_metric_process_deinit(struct prb_metric_process *process);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What a process is called beside its pid, in metrics. */
#ifndef PRB_GATEWAY_METRICS_PROCESS_H
#define PRB_GATEWAY_METRICS_PROCESS_H

#include <sys/types.h>

#include "base/str.h"

/**
 * Texts of it, without control characters and secrets, of at most 100 characters: a process can
 * choose all but the user. NULL: unknown. Starts as {}.
 */
struct prb_metric_process {
	pid_t pid;
	char *user;	  /**< its name, or number */
	char *script;	  /**< "train.py", "-m http.server", "gunicorn" */
	char *executable; /**< name of the file */
	char *job;	  /**< of which it is a rank: "torch 10.0.0.7:29500" */
	long rank;	  /**< -1: none, as far as its environment says */
};

/** Reads them; what cannot be read stays unknown. PRB_ERROR_NOMEM. */
struct prb_error *prb_metric_process_read(pid_t pid, struct prb_metric_process *ret) PRB_MUST_CHECK;
void prb_metric_process_deinit(struct prb_metric_process *process);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What `probing list --job` says of each job; `list.c` shows its processes. */
#ifndef PRB_CLI_COMMANDS_LIST_JOB_H
#define PRB_CLI_COMMANDS_LIST_JOB_H

#include <sys/types.h>

#include "base/json.h"
#include "base/str.h"
#include "cluster/jobs/job.h"
#include "target/proc/process.h"

/** The parent of all its ranks that have a process, which started them; 0: they have several. */
pid_t prb_list_launcher(const struct prb_job *job, const struct prb_python_processes *all);

/**
 * Appends lines: the job's name, how many of its ranks are here, their launcher, and the missing
 * ranks.
 */
void prb_list_job_text(const struct prb_job *job, pid_t launcher, struct prb_str *s);

/** Adds the same to an object. */
void prb_list_job_json(const struct prb_job *job, pid_t launcher, struct prb_json *json);

#endif

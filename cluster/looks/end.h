/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How ranks of this machine have ended: the exit status of a process that its parent has not
 * reaped yet, what the launcher or the rank has written to its log, a crash record of ours, and the
 * OOM killer's counter.
 *
 * Logs are the user's own words. Only a regular file on a local file system is read, through the
 * descriptor that the launcher or a rank has open as its stdout or stderr; of it the last 64 KiB.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_LOOKS_END_H
#define PRB_CLUSTER_LOOKS_END_H

#include "base/error.h"
#include "cluster/looks/seen.h"

/** Sets `end`, `end_log` and `end_known` of the ranks of this machine that have ended. */
struct prb_error *prb_end_note(const struct prb_job *job, struct prb_round *round) PRB_MUST_CHECK;

/**
 * Appends "exited with status 1" of a process that started at @p start_ticks (0: any), if it is a
 * zombie still, and one that we may read: of others the kernel says 0.
 */
void prb_end_put(struct prb_str *s, pid_t pid, uint64_t start_ticks);

/**
 * Finds in a line of a log which rank of the job has ended, and how. @p first_rank: the number of
 * local rank 0. *ret: a part of @p line, or NULL; the rank is -1 then.
 */
long prb_end_parse(const char *line, long first_rank, const char **ret);

#endif

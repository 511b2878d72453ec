/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Looks at the ranks of one machine as JSON, and those of several machines put together.
 *
 * `probing cluster look` prints them on each host; the host that asked merges them into one job.
 * Answers come from machines that may be hostile: everything is checked and bounded, and a host
 * with a malformed answer is left out with the reason.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_WIRE_H
#define PRB_CLUSTER_WIRE_H

#include "base/error.h"
#include "base/str.h"
#include "cluster/gather.h"
#include "cluster/look.h"

/** Appends @p count looks at @p job as one JSON object. All threads are in the last look only. */
void prb_looks_write(const struct prb_job *job, const struct prb_round *rounds, size_t count,
		     struct prb_str *s);

/**
 * Makes one job of @p answers, with @p count rounds of looks at it. An answer without ranks of the
 * job is no error. Answers that cannot be used get their `error`. Ranks that no host has are absent
 * if all hosts have answered, and unknown otherwise. PRB_ERROR_NOT_FOUND if no host has a rank,
 * PRB_ERROR_USAGE if hosts have ranks of different jobs.
 */
struct prb_error *prb_looks_merge(struct prb_answers *answers, struct prb_job *job,
				  struct prb_round *rounds, size_t count) PRB_MUST_CHECK;

#endif

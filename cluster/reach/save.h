/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Saves a job: a snapshot of each rank and the looks at them, as a bundle
 * (target/snapshot/bundle.h); and reads the looks of a bundle again.
 *
 * Each snapshot is made by a child, `probing -p PID snapshot`, as many at a time as there are
 * processors: a rank that makes its reader hang or crash loses its own snapshot only.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_REACH_SAVE_H
#define PRB_CLUSTER_REACH_SAVE_H

#include <stdbool.h>

#include "base/error.h"
#include "cluster/reach/gather.h"
#include "cluster/looks/seen.h"
#include "cluster/looks/json.h"

/** Called with the reason why a rank was not saved: "rank 3: …". */
typedef void prb_save_warn(const char *text);

/**
 * Makes a snapshot of each rank of @p job that has a process on this machine; @p redact: without
 * values. *ret gets one answer for each rank; those without a process have no words.
 */
struct prb_error *prb_save_snapshots(const struct prb_job *job, bool redact, double deadline_s,
				     prb_save_warn *warn, struct prb_answers *ret) PRB_MUST_CHECK;

/** Writes the bundle of this machine to @p fd; @p redact: as the snapshots were made. *count:
 * snapshots in it. */
struct prb_error *prb_save_write(int fd, const struct prb_job *job, const struct prb_round *round,
				 const struct prb_answers *snapshots, bool redact,
				 size_t *count) PRB_MUST_CHECK;

/**
 * Copies the bundle that a host has printed into the bundle that is being written to @p fd. The
 * host has the number @p number. Adds the host's looks to @p looks. *why as of prb_looks_add().
 * *count grows.
 */
struct prb_error *prb_save_copy(int fd, long number, const struct prb_answer *answer,
				struct prb_looks *looks, size_t *count, char **why) PRB_MUST_CHECK;

/** Adds all looks of the bundle at @p path. */
struct prb_error *prb_save_load(const char *path, struct prb_looks *looks) PRB_MUST_CHECK;

#endif

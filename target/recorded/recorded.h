/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A recording (.profile) or a ring (.ring) as a target: rows of a process, and nothing else.
 *
 * It has neither memory nor /proc files, and says so whoever asks. The tables of the schema
 * "profile", those of rings, and `perf` read the file itself.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_TARGET_RECORDED_RECORDED_H
#define PRB_TARGET_RECORDED_RECORDED_H

#include <stdbool.h>

#include "target/target.h"

/** The application_id of the SQLite databases that recordings are: "PRBF". */
enum { PRB_RECORDED_APPLICATION = 0x50524246 };

/** True if the file at @p path begins like a recording. */
bool prb_recorded_probe(const char *path);
/** True if it begins like a ring (docs/ring-format.md). */
bool prb_recorded_probe_ring(const char *path);

struct prb_error *prb_target_open_recorded(const char *path,
					   struct prb_target **ret) PRB_MUST_CHECK;

/** Where the recording is, or NULL if @p t is another kind of target; the target's. */
const char *prb_recorded_path(const struct prb_target *t);
/** As above, for a ring. */
const char *prb_recorded_ring(const struct prb_target *t);

#endif

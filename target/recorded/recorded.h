/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A recording (.profile), a ring (.ring) or a process's folder of rings as a target: rows of
 * a process, and nothing else.
 *
 * It has neither memory nor /proc files; reading these is an error that says so. The tables of the
 * schema "profile", those of rings, and `perf` read the file itself.
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
/** True if it is a folder with the name of a process's rings: PID-STARTTIME. */
bool prb_recorded_probe_folder(const char *path);

struct prb_error *prb_target_open_recorded(const char *path,
					   struct prb_target **ret) PRB_MUST_CHECK;

/** A folder of rings: takes over @p fd, which is open on it. */
struct prb_error *prb_target_open_rings(int fd, const char *path,
					struct prb_target **ret) PRB_MUST_CHECK;

/** Where the recording is, or NULL if @p t is another kind of target; the target's. */
const char *prb_recorded_path(const struct prb_target *t);
/** As above, for a ring. */
const char *prb_recorded_ring(const struct prb_target *t);
/** As above, for a folder of rings; *ret_fd is open on it. */
const char *prb_recorded_folder(const struct prb_target *t, int *ret_fd);

#endif

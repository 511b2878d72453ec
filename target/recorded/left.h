/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Folders with rings that ended processes have left behind (docs/ring-format.md).
 *
 * Purpose: finds them where agents make them: $PROBING_DATA_DIR, $XDG_RUNTIME_DIR/probing and
 * /tmp/probing-UID; for root also all users'. The owner of such a folder chose its content, so
 * nothing is followed out of it: see prb_own_folder_open().
 *
 * Threading: any thread; nothing here keeps state. Ownership: vectors, paths and descriptors are
 * the caller's.
 */
#ifndef PRB_TARGET_RECORDED_LEFT_H
#define PRB_TARGET_RECORDED_LEFT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

struct prb_left {
	pid_t pid;
	uint64_t start_ticks; /**< when the process started: clock ticks since boot */
	uid_t uid;
	char *path;
	double time;	/**< last change of a ring, seconds since the epoch */
	uint64_t bytes; /**< of all rings */
	unsigned rings;
};

struct prb_left_list {
	PRB_VEC(struct prb_left) list;
};

/** Appends the folders of processes that have ended, oldest first. */
struct prb_error *prb_left_find_all(struct prb_left_list *ret) PRB_MUST_CHECK;
void prb_left_list_deinit(struct prb_left_list *list);

/**
 * Opens the newest folder of a process @p pid that has ended; of several that had the pid, only
 * the one that started then, unless @p start_ticks is 0. PRB_ERROR_NOT_FOUND.
 */
struct prb_error *prb_left_open(pid_t pid, uint64_t start_ticks, int *ret_fd,
				char **ret_path) PRB_MUST_CHECK;

#endif

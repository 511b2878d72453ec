/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Opening files with another user's rights.
 *
 * The reader of a process or core file often has more rights than its user: root has. File names
 * that come from there are the word of that user, so they are opened with the rights of that user:
 * user, group, further groups, and no capabilities. Otherwise a program could name a file that only
 * the reader may read, and find its content in the reader's output.
 *
 * Threading: only the calling thread changes its rights, by system calls of its own, as glibc
 * would change those of all threads.
 */
#ifndef PRB_TARGET_PROC_RIGHTS_H
#define PRB_TARGET_PROC_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/** The identity that opens files, as the kernel sees it. */
struct prb_rights {
	uid_t uid; /**< the user for file systems */
	gid_t gid;
	gid_t *groups; /**< further groups */
	size_t group_count;
};

/** Reads them from the text of a process's status; PRB_ERROR_BAD_DATA if they are not there. */
struct prb_error *prb_rights_parse(const char *status, struct prb_rights *ret) PRB_MUST_CHECK;
void prb_rights_deinit(struct prb_rights *rights);

/** True if we may have more rights than other processes of our user. */
bool prb_rights_are_special(void);

/**
 * Opens a regular file as prb_file_open() does, with these rights where they are not our own. A
 * reader without CAP_SETUID or CAP_SETGID, which cannot take these rights, gets only files that
 * belong to the user, and root's world-readable ones.
 */
struct prb_error *prb_rights_open(const struct prb_rights *rights, int root, const char *path,
				  int *ret_fd) PRB_MUST_CHECK;

/** The rights that a thread gave up. */
struct prb_rights_saved {
	struct prb_rights rights;
	uint32_t effective[2]; /**< capabilities */
	int dumpable, death_signal;
	pid_t parent;
	bool changed;
	bool complete; /**< the thread has the rights asked for, not just fewer capabilities */
};

/**
 * Gives the calling thread these rights to files, until prb_rights_restore(). Without the
 * capability to change users it only gives up its capabilities: `complete` is false then.
 */
struct prb_error *prb_rights_take(const struct prb_rights *rights,
				  struct prb_rights_saved *saved) PRB_MUST_CHECK;

/** Does nothing if nothing was changed. */
void prb_rights_restore(struct prb_rights_saved *saved);
#define prb_auto_rights __attribute__((cleanup(prb_rights_restore)))

#endif

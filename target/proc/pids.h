/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which processes there are, by /proc. Its pids have to be ours: a /proc that was mounted for
 * another pid namespace shows, by the number of one process, the files of another. Each way to
 * processes asks that here before it opens the first.
 * Threading: all functions may be called from any thread.
 */
#ifndef PRB_TARGET_PROC_PIDS_H
#define PRB_TARGET_PROC_PIDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

/** Starts as {}. */
struct prb_pids {
	PRB_VEC(pid_t) list;
};
void prb_pids_deinit(struct prb_pids *pids);
#define prb_auto_pids __attribute__((cleanup(prb_pids_deinit)))

/** PRB_ERROR_FAILED, with a hint, if /proc is missing, or of another pid namespace. */
struct prb_error *prb_proc_check(void) PRB_MUST_CHECK;

/** Appends the pids of all processes that /proc shows, in order. Checks it first. */
struct prb_error *prb_pids_of_all(struct prb_pids *ret) PRB_MUST_CHECK;

/** Appends the numbers of a list, "12 15 ", up to what is none. */
struct prb_error *prb_pids_parse(const char *list, struct prb_pids *ret) PRB_MUST_CHECK;

/**
 * Appends the children that the thread @p tid of @p pid has, as the kernel lists them. *listed is
 * false if it does not, or the thread has ended: then they are another thread's.
 */
struct prb_error *prb_pids_of_children(pid_t pid, pid_t tid, struct prb_pids *ret,
				       bool *listed) PRB_MUST_CHECK;

/** True if /proc shows all processes of the machine, and not only those of a container. */
bool prb_pids_are_all(void);

#endif

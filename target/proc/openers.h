/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The processes of this machine that have a certain file open.
 *
 * Threading: all functions may be called from any thread.
 */
#ifndef PRB_TARGET_PROC_OPENERS_H
#define PRB_TARGET_PROC_OPENERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

struct prb_opener {
	pid_t pid;
	bool locks; /**< it has locked the file */
};

/** Starts as {}. */
struct prb_openers {
	PRB_VEC(struct prb_opener) list; /**< one for each process, in the order of pids */
	bool all;			 /**< no process of the machine may be missing */
};
void prb_openers_deinit(struct prb_openers *openers);
#define prb_auto_openers __attribute__((cleanup(prb_openers_deinit)))

/**
 * Finds them for the file that is open here as @p fd, under the last name of its path: a descriptor
 * of another name is another file's, or of another link to it. This process itself is not counted.
 */
struct prb_error *prb_openers_find(int fd, struct prb_openers *ret) PRB_MUST_CHECK;

#endif

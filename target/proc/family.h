/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Several pids that are one program: a process and the children that it forked.
 *
 * Threading: free. Errors: out of memory.
 */
#ifndef PRB_TARGET_PROC_FAMILY_H
#define PRB_TARGET_PROC_FAMILY_H

#include "base/error.h"
#include "target/proc/pids.h"

/**
 * The Python process among @p pids that is an ancestor of all other Python processes among them; 0
 * if none is. A shell or launcher that is no Python is not considered.
 */
struct prb_error *prb_family_parent(const struct prb_pids *pids, pid_t *ret) PRB_MUST_CHECK;

#endif

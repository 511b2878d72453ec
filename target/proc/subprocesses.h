/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file All descendants of a process.
 */
#ifndef PRB_TARGET_PROC_SUBPROCESSES_H
#define PRB_TARGET_PROC_SUBPROCESSES_H

#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/proc/process.h"

struct prb_subprocesses {
	PRB_VEC(struct prb_process) list; /**< each after its parent; children in order of pid */
};

/** Finds all descendants of @p pid that are programs (no zombies). Leaves @p pid itself out. */
struct prb_error *prb_subprocesses_find(pid_t pid, struct prb_subprocesses *ret) PRB_MUST_CHECK;
void prb_subprocesses_deinit(struct prb_subprocesses *subprocesses);

#endif

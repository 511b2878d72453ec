/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Processes whose GIL no thread may wait for: children of a fork() that bypassed Python.
 *
 * A program in C that calls fork() without PyOS_AfterFork_Child() copies the GIL as it is. If other
 * threads of the parent waited for the GIL, its condition variables count waiters that the child
 * does not have. Waking a missing waiter blocks the whole child for good. As long as the child has
 * one thread, that never happens, since no thread waits. A thread of ours that acquires the GIL
 * would make it happen.
 *
 * Threading: as the target's.
 */
#ifndef PRB_CONTROL_FORKED_H
#define PRB_CONTROL_FORKED_H

#include "base/error.h"
#include "target/target.h"

/**
 * PRB_ERROR_UNSUPPORTED if taking the GIL could block @p t as described above. Costs one small file
 * for a process that was started by exec; others are looked at like a dump does.
 */
struct prb_error *prb_forked_check(struct prb_target *t) PRB_MUST_CHECK;

#endif

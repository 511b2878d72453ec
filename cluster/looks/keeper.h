/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Follows a rank that is in no collective to what it waits for in the end: a thread, the
 * holder of a lock or a file lock, a child, the process at the other end of a pipe. One thread at a
 * time.
 */
#ifndef PRB_CLUSTER_LOOKS_KEEPER_H
#define PRB_CLUSTER_LOOKS_KEEPER_H

#include "base/error.h"
#include "cluster/looks/seen.h"

/**
 * Sets `chain`, in words, and `keeper`, the last process on the way. Of a wait for a thread that is
 * not known, the threads are named that it may be: `guessed`. Both stay empty if the rank waits for
 * nobody.
 */
struct prb_error *prb_keeper_find(struct prb_seen *seen) PRB_MUST_CHECK;

#endif

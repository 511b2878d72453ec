/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A lock of a ring's file, for those who must not read one ring twice, as senders to a
 * database. It is advisory: the process that writes the ring notices nothing. It lasts as long as
 * the descriptor and its copies. Files of rings are their owner's alone, so no other user can keep
 * a ring from being read.
 *
 * These are shared locks, which a descriptor for reading may have; two of them at one place show
 * that there are two processes.
 *
 * Threading: any thread.
 */
#ifndef PRB_RINGS_CLAIM_H
#define PRB_RINGS_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

/** True if another process has the ring that is open at @p fd, for what @p purpose stands for. */
bool prb_ring_is_claimed(int fd, uint64_t purpose);

/** Takes it, unless another process has it: then false. A file system without locks has no others.
 */
bool prb_ring_claim(int fd, uint64_t purpose);

#endif

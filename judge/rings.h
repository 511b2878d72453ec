/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Who waits for whom at a ring of messages in shared memory (values/shared_rings.h). Such a
 * wait is a loop, which the kernel knows nothing of.
 *
 * Threading: that of the target. The rings are the targets' words: nothing is proven by them.
 */
#ifndef PRB_JUDGE_RINGS_H
#define PRB_JUDGE_RINGS_H

#include "dump/model/dump.h"
#include "values/shared_rings.h"

/** A process, and its rings. */
struct prb_ring_peer {
	pid_t pid;
	struct prb_shared_rings rings;
};

/** Starts as {}. */
struct prb_ring_peers {
	PRB_VEC(struct prb_ring_peer) list; /**< the first is the target */
};
void prb_ring_peers_deinit(struct prb_ring_peers *peers);
#define prb_auto_ring_peers __attribute__((cleanup(prb_ring_peers_deinit)))

/** Reads the rings of a target and, if it is a live process here, of those who share them. */
struct prb_error *prb_ring_peers_read(struct prb_target *t,
				      struct prb_ring_peers *ret) PRB_MUST_CHECK;

/**
 * The process that is the reader @p reader of the ring, or writes it (-1), and its view of the
 * ring; NULL: not known.
 */
const struct prb_ring_peer *prb_ring_peers_find(const struct prb_ring_peers *peers,
						const struct prb_shared_ring *ring, int64_t reader,
						const struct prb_shared_ring **ret);

/** Notes for each thread of the dump that is in the loop of a ring who can end its wait. */
struct prb_error *prb_rings_note_waits(struct prb_target *t, struct prb_dump *dump) PRB_MUST_CHECK;

#endif

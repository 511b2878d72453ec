/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Proof that a thread holds a lock that does not record its owner. Internal to dump/.
 *
 * Of a live process all is read anew for it, while the thread sleeps or is stopped: what was read
 * before may be of another instant.
 */
#ifndef PRB_DUMP_READ_LOCK_PROOF_H
#define PRB_DUMP_READ_LOCK_PROOF_H

#include "dump/read/reader.h"

/** That a thread holds a lock because one of its frames is inside of it. */
struct prb_lock_claim {
	struct prb_reader_thread *thread;
	bool other; /**< the dump lacks the thread */
	uint64_t lock;
	uint64_t frame, code; /**< the frame and its code object */
};

/** True if the thread held the lock at an instant of this call. */
struct prb_error *prb_lock_prove(struct prb_reader *r, const struct prb_lock_claim *claim,
				 bool *ret) PRB_MUST_CHECK;

#endif

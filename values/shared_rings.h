/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Rings of messages in memory that processes share, as vLLM and SGLang have between an engine
 * and its workers: ShmRingBuffer, and the MessageQueue around it.
 *
 * A ring has chunks. Each has a byte that says if it is written, and one for each reader that says
 * if that one has read it. A writer waits until all have read the chunk that it is to write next.
 *
 * Threading: as values/interpreters.h. What the objects say is the target's word.
 */
#ifndef PRB_VALUES_SHARED_RINGS_H
#define PRB_VALUES_SHARED_RINGS_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "target/mem/maps.h"
#include "target/target.h"

struct prb_shared_ring {
	uint64_t address;    /**< of the Python object */
	struct prb_str name; /**< of the shared memory: "psm_4f1c0a2b" */
	uint64_t inode;
	uint32_t major, minor;
	int64_t readers, chunks, chunk_bytes;
	bool has_queue;	 /**< the following are known */
	bool writes;	 /**< this process writes it */
	int64_t reader;	 /**< or is this reader of it; -1: neither */
	int64_t current; /**< the chunk that it is to write or read next; -1: not known */
	uint8_t *flags;	 /**< for each chunk: 1 if it is written, then 1 for each who has read it */
};

struct prb_shared_rings {
	PRB_VEC(struct prb_shared_ring) list;
};

/** Reads all rings of the main interpreters; none is no error. */
struct prb_error *prb_shared_rings_read(struct prb_target *t,
					struct prb_shared_rings *ret) PRB_MUST_CHECK;
void prb_shared_rings_deinit(struct prb_shared_rings *rings);
#define prb_auto_shared_rings __attribute__((cleanup(prb_shared_rings_deinit)))

/** How many chunks are written that @p reader has not read. */
int64_t prb_shared_ring_unread(const struct prb_shared_ring *ring, int64_t reader);
/** True if the chunk is written, and @p reader has not read it. */
bool prb_shared_ring_is_unread(const struct prb_shared_ring *ring, int64_t chunk, int64_t reader);

/** True if both are views of the same memory. */
bool prb_shared_ring_same(const struct prb_shared_ring *a, const struct prb_shared_ring *b);

#endif

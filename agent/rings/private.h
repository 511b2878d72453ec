/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by making (create.c) and writing (write.c) rings. Internal to agent/rings/. */
#ifndef PRB_AGENT_RINGS_PRIVATE_H
#define PRB_AGENT_RINGS_PRIVATE_H

#include <stdint.h>

#include "agent/ring.h"

struct prba_history;

enum { PRBA_RINGS = 64, PRBA_RING_PATH = 512 };

struct prba_ring {
	struct prb_ring_header *header; /**< the mapped file */
	struct prb_ring_bounds *bounds;
	uint64_t *string_index;
	char *strings;
	char *slots;
	/* Copies: another process of our user could change what the header says. */
	uint32_t slot_size, chunk_shift, chunks, column_count;
	uint32_t string_places, string_bytes;
	int64_t clock;	/**< the header's realtime */
	uint64_t bytes; /**< of the file */
	uint8_t types[PRB_RING_COLUMNS];
	struct prba_history *history; /**< or NULL */
	char path[PRBA_RING_PATH];
};

/** The ring of a handle, or NULL: a handle is 1 for the first. */
struct prba_ring *prba_ring_of(intptr_t handle);

/** Prepares what threads remember of themselves. 0 or an errno value; once, before any append. */
int prba_ring_threads_init(void);

#endif

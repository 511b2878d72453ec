/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reading very much memory in little room: a cache of the pages that were read last.
 *
 * A view (view.h) keeps each page that it has read; walking a heap would copy the heap. Here a page
 * gives way to another that falls into its place, so at most PRB_BLOCKS_MAX bytes are held, and
 * only as much as is used. Pages that are read in order are read in growing pieces, others one by
 * one. Blocks may be of different instants; the caller drops those that must be current.
 *
 * Threading: one thread at a time. The cache borrows its base, which must outlive it.
 */
#ifndef PRB_TARGET_MEM_BLOCKS_H
#define PRB_TARGET_MEM_BLOCKS_H

#include "target/mem/mem.h"

enum { PRB_BLOCKS_MAX = 64 << 20 };

struct prb_blocks;

struct prb_error *prb_blocks_create(struct prb_mem *base, struct prb_blocks **ret) PRB_MUST_CHECK;
void prb_blocks_destroy(struct prb_blocks *blocks);

/** The cache as a memory source; owned by the cache. */
struct prb_mem *prb_blocks_mem(struct prb_blocks *blocks);

/**
 * The cache's own copy of @p length bytes (at most 4096), valid until the next read through the
 * cache; NULL if they do not lie side by side in it, or their pages cannot be read: read them
 * instead.
 */
const void *prb_blocks_at(struct prb_blocks *blocks, uint64_t address, size_t length);

/** Gives back the memory of what is held: all is read again when it is asked for. */
void prb_blocks_drop(struct prb_blocks *blocks);

/** The page that holds @p address is read again when it is asked for. */
void prb_blocks_forget(struct prb_blocks *blocks, uint64_t address);

#endif

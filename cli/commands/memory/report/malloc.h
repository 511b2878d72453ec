/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the allocator of glibc has handed out, read from outside: its arenas are chains of
 * chunks, each of which says where the next one is.
 *
 * The chunks of a process that runs change meanwhile. A chain that does not lead to the end of its
 * arena is read again; if that does not help, nothing is said of any arena. Freed blocks that are
 * in the cache of a thread look as if they were used.
 *
 * Large blocks have mappings of their own, in which each page that is there is looked at. They come
 * last: where the time ends, the arenas are known, and how much was not looked through.
 *
 * Threading: one thread at a time. The memory is untrusted: sizes are checked, walks are bounded.
 */
#ifndef PRB_CLI_COMMANDS_MEMORY_REPORT_MALLOC_H
#define PRB_CLI_COMMANDS_MEMORY_REPORT_MALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "target/target.h"

/** Blocks of one size, which are in use. */
struct prb_malloc_size {
	uint64_t size; /**< of the chunk: 8 to 23 bytes more than was asked for */
	uint64_t blocks;
	uint64_t word; /**< that most of them begin with, if `votes` is more than half */
	uint64_t votes;
};

struct prb_malloc {
	bool known;
	const char *reason;		      /**< why not; static */
	unsigned arenas;		      /**< heaps of them; the main one, too */
	uint64_t bytes;			      /**< of these heaps */
	uint64_t used, blocks;		      /**< of them */
	uint64_t mapped_bytes, mapped_blocks; /**< large ones, each with a mapping */
	uint64_t unseen;	/**< bytes of mappings that were not looked through for them */
	const char *unseen_why; /**< static */
	uint64_t other_sizes;	/**< blocks of sizes that are not counted: there are too many */
	PRB_VEC(struct prb_malloc_size) sizes;
	struct prb_number_map size_numbers; /**< by size */
};

/**
 * Fills in @p ret, which is to be zeroed. Errors: PRB_ERROR_NOMEM, and errors of a process that has
 * ended.
 */
struct prb_error *prb_malloc_read(struct prb_target *target, double max_seconds,
				  struct prb_malloc *ret) PRB_MUST_CHECK;
void prb_malloc_deinit(struct prb_malloc *malloc);

/** Blocks of that size; all 0 if there are none. */
struct prb_malloc_size prb_malloc_size(const struct prb_malloc *malloc, uint64_t size);

#endif

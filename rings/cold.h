/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Cold files: chunks of a ring that were copied and compressed before the ring dropped them,
 * by a process of ours (docs/ring-format.md). prb_ring_open() reads them as it reads rings.
 *
 * A file NAME.NUMBER.cold is the header and the columns of its ring, with a magic of its own, and
 * then parts: each a struct prb_cold_part and its bytes, a zstd frame. NUMBER is its first chunk's,
 * in 16 digits. A writer that is killed leaves a truncated part, which ends the file for readers.
 *
 * Threading: one thread at a time per writer. Ownership: the writer is the caller's. Errors: as
 * said at the functions.
 */
#ifndef PRB_RINGS_COLD_H
#define PRB_RINGS_COLD_H

#include <stdint.h>

#include "base/error.h"
#include "rings/ring.h"

#define PRB_COLD_MAGIC "PRBCOLD\n"
#define PRB_COLD_END ".cold"

enum prb_cold_kind { PRB_COLD_CHUNK = 1, PRB_COLD_STRINGS };

struct prb_cold_part {
	uint32_t kind;		       /**< enum prb_cold_kind */
	uint32_t size;		       /**< of the frame that follows, bytes */
	uint64_t number;	       /**< of a chunk */
	struct prb_ring_bounds bounds; /**< of a chunk, as in the ring */
};

/** Most bytes that a chunk has when it is unpacked: more is no cold file. */
enum { PRB_COLD_CHUNK_BYTES = 16 << 20 };

/** Where the chunks of one ring go. */
struct prb_cold {
	char *stem;	     /**< name of the files without NUMBER and end */
	int folder;	     /**< the caller's */
	int fd;		     /**< of the present file, or -1 */
	uint64_t written;    /**< bytes of it */
	uint64_t file_bytes; /**< after so many another file begins; 0: 16 MiB */
	bool begun;	     /**< the ring was seen */
	uint64_t next;	     /**< number of the first chunk that was not stored */
	uint64_t missed;     /**< chunks that were dropped before they were stored */
	uint64_t strings;    /**< bytes of strings that the present file has */
	uint64_t chunks;     /**< stored */
	uint64_t bytes;	     /**< stored, of all files */
};

void prb_cold_deinit(struct prb_cold *cold);

/**
 * Stores the chunks of the ring in @p fd that are full; @p ended: also the last one, since there is
 * no writer any more. PRB_ERROR_OS if the disk is full, and PRB_ERROR_BAD_DATA,
 * PRB_ERROR_UNSUPPORTED as prb_ring_open(). Chunks stored before stay.
 */
struct prb_error *prb_cold_store(struct prb_cold *cold, int fd, bool ended) PRB_MUST_CHECK;

/** Goes on after the files of an earlier recorder; @p ring is the one that will be stored. */
struct prb_error *prb_cold_continue(struct prb_cold *cold,
				    const struct prb_ring_header *ring) PRB_MUST_CHECK;

/**
 * Removes the files of @p folder not written to since @p oldest, seconds since the epoch, and then
 * the oldest ones until the others have @p most bytes at most. *ret_removed, unless it is NULL, is
 * how many bytes were removed for that limit. The writer of a removed file begins another one.
 */
struct prb_error *prb_cold_prune(int folder, int64_t oldest, uint64_t most,
				 uint64_t *ret_removed) PRB_MUST_CHECK;

/** True for names that end in ".cold". */
bool prb_cold_is_name(const char *name);

/* For ring.c. */

/** Reads the next chunk of a cold file into the ring's buffers; false at its end. */
struct prb_error *prb_cold_next_chunk(struct prb_ring *ring, const struct prb_ring_range *range,
				      bool *ret) PRB_MUST_CHECK;

#endif

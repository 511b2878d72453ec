/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reading rings (agent/ring.h), while they are written and after their process has died.
 *
 * Purpose: gives whole rows only. A file is as hostile as the process that wrote it: every number
 * in it is checked, and it is read by pread(), so that a file that shrinks meanwhile cannot hurt.
 *
 *     PRB_TRY(prb_ring_open(fd, path, &ring));
 *     while (prb_ring_next_chunk(ring, &range, &more), more)
 *             while (prb_ring_next_row(ring, &row)) …
 *
 * Reads the rows that were whole when the ring was opened, and maybe some newer ones; in the order
 * in which their slots were reserved. A chunk that is dropped while it is read gives no rows at
 * all, and counts in `overtaken`.
 *
 * Threading: one thread at a time per ring. Ownership: texts are valid until the next
 * row. Errors: PRB_ERROR_UNSUPPORTED (another version), PRB_ERROR_BAD_DATA (no ring).
 */
#ifndef PRB_RINGS_RING_H
#define PRB_RINGS_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/ring.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

/** Chunks from number @p from on, without @p to. */
struct prb_ring_span {
	uint64_t from, to;
};

struct prb_ring {
	int fd;
	char *path;
	struct prb_ring_header header; /**< as of the opening; its numbers are in bounds */
	struct prb_ring_column columns[PRB_RING_COLUMNS];
	struct prb_ring_parts parts;
	uint64_t size;	    /**< of the file: less than the header says if it was cut */
	uint64_t end;	    /**< slots that were reserved when it was opened */
	uint64_t dropped;   /**< slots of chunks that were dropped before */
	uint64_t overtaken; /**< chunks that were dropped while they were read */
	uint64_t missing;   /**< slots that lie behind the end of a file that was cut */
	uint64_t damaged;   /**< rows that contradict themselves */
	uint64_t pending;   /**< slots whose writer is in them, or died in them */
	uint64_t left_out;  /**< chunks outside of the range */
	uint32_t wanted;    /**< bit N: texts of column N are to be found; all at first */

	/** Ascending. Of a cold file: chunks that it lacks, or has damaged, before the last good
	 * one. Of a ring: those before `stored` that no cold file has, see prb_ring_leave_stored().
	 */
	PRB_VEC(struct prb_ring_span) gaps;
	bool cold;	 /**< its chunks are packed: see rings/cold.h */
	uint64_t offset; /**< of a cold file: the next part */

	/* The rest belongs to ring.c. */
	uint64_t chunk; /**< the next one */
	uint64_t stored;
	size_t gap; /**< the first that does not end before `chunk` */
	uint32_t slot, slots;
	uint64_t first;	     /**< number of the present chunk's first slot */
	char *states, *data; /**< two copies of it, one after the other */
	char *strings;
	struct prb_str text;
	uint32_t has_texts; /**< bit N: column N is of texts */
};

struct prb_ring_item {
	int64_t time; /**< nanoseconds since the epoch */
	uint32_t pid, tid;
	uint64_t number;
	uint32_t nulls;
	uint64_t cells[PRB_RING_COLUMNS];
	const char *texts[PRB_RING_COLUMNS]; /**< of columns of texts: NULL where there is none */
	uint32_t lengths[PRB_RING_COLUMNS];
};

/** Only chunks that may have rows of these times are read; nanoseconds since the epoch. */
struct prb_ring_range {
	int64_t from, to;
};
#define PRB_RING_ALWAYS              \
	{                            \
		INT64_MIN, INT64_MAX \
	}

/** Opens the ring in @p fd, which it takes over, also if it fails. @p path is for messages. */
struct prb_error *prb_ring_open(int fd, const char *path, struct prb_ring **ret) PRB_MUST_CHECK;
/** NULL is allowed. */
void prb_ring_close(struct prb_ring *ring);

static inline void prb_ring_guard(struct prb_ring **ring)
{
	prb_ring_close(*ring);
}
#define prb_auto_ring __attribute__((cleanup(prb_ring_guard)))

/** Reads the next chunk that has rows; *ret is false after the last. */
struct prb_error *prb_ring_next_chunk(struct prb_ring *ring, const struct prb_ring_range *range,
				      bool *ret) PRB_MUST_CHECK;

/** Leaves out the chunks before number @p chunk. Not of a cold file. */
void prb_ring_skip(struct prb_ring *ring, uint64_t chunk);

/** Leaves out the chunks before number @p chunk, except those in @p gaps, ascending. Once. */
struct prb_error *prb_ring_leave_stored(struct prb_ring *ring, uint64_t chunk,
					const struct prb_ring_span *gaps,
					size_t count) PRB_MUST_CHECK;

/** True if both headers belong to the same ring, cold or not. */
bool prb_ring_is_same(const struct prb_ring_header *ring, const struct prb_ring_header *other);

/**
 * Number of the first slot of the present chunk from @p from on that was reserved, but whose writer
 * has not finished it; behind the chunk if there is none. Not of a cold file.
 */
uint64_t prb_ring_unfinished(const struct prb_ring *ring, uint64_t from);

/** The next row of the chunk; false after the last. */
bool prb_ring_next_row(struct prb_ring *ring, struct prb_ring_item *ret);

/** The position of the column with that name and type; -1: there is none. */
int prb_ring_column(const struct prb_ring *ring, const char *name, uint32_t type);

/** The role of the process that made it, or NULL; the ring's. */
const char *prb_ring_role(const struct prb_ring *ring);

#endif

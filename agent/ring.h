/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The format of a ring: a file of bounded size in which a process keeps its newest rows of
 * one table (docs/ring-format.md). The writer is agent/rings/write.h, the reader rings/ring.h.
 *
 * All numbers have the byte order of the machine. A file has these parts, in this order:
 *
 *     struct prb_ring_header       one page
 *     struct prb_ring_column[]     one for each column
 *     struct prb_ring_bounds[]     one for each chunk: the times of its rows
 *     uint64_t[]                   hash table of the interned strings
 *     bytes                        the interned strings: each a uint32_t length and its bytes
 *     slots                        `chunks` << `chunk_shift` of `slot_size` bytes
 *
 * Slot number N, counted from the beginning of the ring, lies at place N modulo the number of
 * slots. A chunk is 1 << chunk_shift slots. When a writer reserves the first slot of a chunk, the
 * rows that the chunk held before are dropped, all at once.
 *
 * A writer adds the number of its row's slots to `head`, which reserves them, and makes each busy.
 * A slot that is busy already belongs to a writer that was stopped for a whole round of the ring:
 * it is counted in `skipped`, the other slots become void, and the writer reserves again. Then it
 * writes the row, widens the bounds of the chunk, and stores the states of the slots that follow,
 * and last that of the first.
 */
#ifndef PRB_AGENT_RING_H
#define PRB_AGENT_RING_H

#include <stdint.h>

#define PRB_RING_MAGIC "PRBRING\n"

enum {
	PRB_RING_VERSION = 1,
	PRB_RING_HEADER = 4096,
	PRB_RING_COLUMNS = 32,	       /**< most that a table has */
	PRB_RING_NAME = 64,	       /**< bytes of a name with its NUL */
	PRB_RING_UNIT = 16,	       /**< the same of a unit */
	PRB_RING_ROLE = 64,	       /**< the same of a role */
	PRB_RING_STRINGS = 1024,       /**< places in the hash table */
	PRB_RING_STRING_BYTES = 65536, /**< for interned strings with their lengths */
	PRB_RING_ROW_SLOTS = 32,       /**< most that one row takes; fewer than a chunk has */
};

enum prb_ring_type {
	PRB_RING_INTEGER, /**< int64_t */
	PRB_RING_REAL,	  /**< double */
	PRB_RING_TEXT,	  /**< see PRB_RING_INTERNED */
	PRB_RING_TYPES,
};

/** The contents of a slot: the lowest three bits of its state. The other bits are its number. */
enum prb_ring_state {
	PRB_RING_EMPTY,
	PRB_RING_BUSY,	   /**< a writer is in it, or died in it */
	PRB_RING_ROW,	   /**< a row begins here, and is whole */
	PRB_RING_CONTINUE, /**< it belongs to the row that began before it */
	PRB_RING_VOID,	   /**< nothing: the row did not fit before the end of the chunk */
	PRB_RING_STATES,
};

enum { PRB_RING_STATE_BITS = 3 };

/** In a cell of text: an interned string, by its place among the strings. Else the cell is the
 * length of a text that lies behind the cells of its row, in the order of the columns. */
#define PRB_RING_INTERNED (1ull << 63)

struct prb_ring_column {
	char name[PRB_RING_NAME];
	char unit[PRB_RING_UNIT];
	uint32_t type; /**< enum prb_ring_type */
	uint32_t reserved;
};

/**
 * The times of a chunk's rows in milliseconds since the header's clock, each with the lowest 24
 * bits of the chunk's number above 40 bits of time. Bounds of another number say nothing.
 */
struct prb_ring_bounds {
	uint64_t first, last;
};

enum { PRB_RING_TIME_BITS = 40 };

struct prb_ring_row {
	uint64_t state; /**< of the slot */
	int64_t time;	/**< nanoseconds since the epoch, CLOCK_REALTIME */
	uint32_t pid, tid;
	uint32_t nulls; /**< bit N: cell N is NULL */
	uint32_t text;	/**< bytes behind the cells */
	uint64_t cells[];
	/* A text goes on behind the state of the slots that follow. */
};

struct prb_ring_header {
	char magic[8];
	uint32_t version, header_size;
	uint32_t column_count, slot_size;
	uint32_t chunk_shift, chunks; /**< slots of a chunk as a power of two; a power of two */
	uint32_t string_places, string_bytes;
	uint64_t file_size;
	int64_t realtime, monotonic, boottime; /**< the clocks when it was made, nanoseconds */
	uint64_t start_time;		       /**< of the process, clock ticks since boot */
	uint32_t pid;			       /**< of the process that made it */
	uint32_t rank; /**< its rank in a job, plus one; 0: it has none, or it is not known */
	char schema[PRB_RING_NAME], name[PRB_RING_NAME];
	/** The role set by probing.set_role(): text number `role`; "": none. */
	char roles[2][PRB_RING_ROLE];
	uint32_t role;
	uint32_t reserved;
	uint64_t pid_namespace; /**< inode number of the namespace that `pid` is of */

	/* What changes lies in cache lines of its own. */
	uint64_t head __attribute__((aligned(64)));	   /**< slots that were reserved */
	uint64_t string_head __attribute__((aligned(64))); /**< bytes of strings in use */
	uint64_t lost;					   /**< rows that could not be written */
	uint64_t skipped; /**< slots that were busy when their turn came again */
};

/** Offsets of the parts, from the numbers in the header; those must be in bounds. */
struct prb_ring_parts {
	uint64_t columns, bounds, string_index, strings, slots, end;
};

static inline struct prb_ring_parts prb_ring_parts(const struct prb_ring_header *header)
{
	struct prb_ring_parts parts = {.columns = header->header_size};

	parts.bounds =
		parts.columns + (uint64_t)header->column_count * sizeof(struct prb_ring_column);
	parts.string_index =
		parts.bounds + (uint64_t)header->chunks * sizeof(struct prb_ring_bounds);
	parts.strings = parts.string_index + (uint64_t)header->string_places * sizeof(uint64_t);
	parts.slots = (parts.strings + header->string_bytes + 4095) & ~4095ull;
	parts.end =
		parts.slots + ((uint64_t)header->chunks << header->chunk_shift) * header->slot_size;
	return parts;
}

static inline uint64_t prb_ring_state(uint64_t number, enum prb_ring_state state)
{
	return number << PRB_RING_STATE_BITS | state;
}

#endif

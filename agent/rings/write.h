/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Writing rows to rings: the functions of libprobing-agent.so for programs, made to be called
 * by ctypes or cffi too. docs/ring-format.md has an example.
 *
 * Purpose: a process keeps the newest rows of a table in a file of fixed size that other processes
 * read at any moment, also after its death.
 *
 * Threading: all functions may be called by any thread at any time. Appending and interning are
 * also for signal handlers, and for children after fork(), whose rows go to the same ring with
 * their own pid. No lock is taken: a writer that was stopped or killed in the middle of a row costs
 * its slot and blocks no other.
 *
 * Ownership: a ring belongs to the process and stays until its end; its file stays behind. Texts
 * are copied.
 *
 * Errors: negative errno values.
 */
#ifndef PRB_AGENT_RINGS_WRITE_H
#define PRB_AGENT_RINGS_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/inside/export.h"

/** The type of a cell. A number is converted to the type of its column. */
enum probing_cell_kind {
	PROBING_NULL,
	PROBING_INTEGER,
	PROBING_REAL,
	PROBING_TEXT,	  /**< `length` bytes of UTF-8 */
	PROBING_INTERNED, /**< `integer` is from probing_ring_intern() */
};

struct probing_cell {
	uint32_t kind; /**< enum probing_cell_kind */
	uint32_t length;
	union {
		int64_t integer;
		double real;
		const char *text;
	};
};

/**
 * Opens the ring of @p table ("user.losses"; letters, digits and underscores), and makes it if this
 * process has none. @p columns is "NAME TYPE [UNIT], …", where TYPE is integer, real or text: "step
 * integer, loss real, took real [ms]". @p bytes is the size of all its rows, rounded up to powers
 * of two; 0: 4 MiB. All of it is allocated at once, so that a full disk is an error here and cannot
 * hurt the process later.
 *
 * Gives the ring, or a negative errno value: EINVAL for the names or columns, E2BIG for more than
 * 32 columns, EDQUOT if it would be more than probing.max_memory, EEXIST if the table exists with
 * other columns, ENOSPC, EROFS, EACCES, EPERM for a folder that others can write to, EMFILE for
 * more than 64 rings.
 */
PRBA_EXPORT intptr_t probing_ring_create(const char *table, const char *columns, uint64_t bytes);

/**
 * Appends one row. @p time is nanoseconds since the epoch, 0: now. @p cells has one cell for each
 * column. 0, or EINVAL (a cell's kind does not fit its column), EMSGSIZE (its texts take more than
 * 32 slots: the row is counted as lost), EAGAIN (too many slots are busy: counted as lost).
 */
PRBA_EXPORT int probing_ring_append(intptr_t ring, int64_t time, const struct probing_cell *cells);

/**
 * Stores a text that many rows have, once. Gives a number for PROBING_INTERNED cells of this ring,
 * or ENOSPC when there is no room: use a PROBING_TEXT cell then.
 */
PRBA_EXPORT int64_t probing_ring_intern(intptr_t ring, const char *text, size_t length);

/** The path of its file; valid until the process ends. */
PRBA_EXPORT const char *probing_ring_path(intptr_t ring);

/**
 * Sets the role of this process in its job, for all its rings; at most 63 bytes. 0 or ENAMETOOLONG.
 */
PRBA_EXPORT int probing_ring_set_role(const char *role);

#endif

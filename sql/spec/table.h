/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A table of SQL, as data: one const spec and one scan function, in one file of
 * sql/tables/SCHEMA/.
 *
 * The spec drives everything that is said of a table: its declaration, `probing tables`,
 * information_schema, the reference in the documentation, completion. A column without a doc is a
 * failure of the build's tests. To add a table, copy a small one (sql/tables/process/limits.c): the
 * build finds it (docs/howto/add-table.md).
 *
 * A scan reads the target through its instant (instant.h) and appends rows:
 *
 *     prb_vec_each (limit, &limits) {
 *             PRB_TRY(prb_scan_row(scan));
 *             prb_put_text(scan, NAME, limit->name);
 *             prb_put_integer(scan, SOFT, limit->soft);
 *     }
 *
 * Cells that are not put are NULL; cells of columns that were not requested are dropped at once.
 * Unreadable cells stay NULL, and the table's `_error` column says why; an error is returned only
 * when nothing at all could be read.
 *
 * A table of many rows gives them in pages: after a page's worth (prb_scan_full()) it notes where
 * it is in scan->position and returns with scan->more set; it is called again when those rows were
 * consumed. So memory is bounded by the page and LIMIT ends the reading.
 *
 * Threading: a scan runs on the thread of its statement.
 */
#ifndef PRB_SQL_SPEC_TABLE_H
#define PRB_SQL_SPEC_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

enum prb_column_type {
	PRB_COLUMN_INTEGER,
	PRB_COLUMN_REAL,
	PRB_COLUMN_TEXT,
	PRB_COLUMN_ANY, /**< differs from row to row */
};

/** Parts of the statement's dump that a column or table needs; one dump is made for the union. */
enum prb_need {
	PRB_NEED_MAIN = 1 << 0,	   /**< stack of the main thread */
	PRB_NEED_THREADS = 1 << 1, /**< stacks of all threads */
	PRB_NEED_LOCALS = 1 << 2,
	PRB_NEED_NATIVE = 1 << 3,
	PRB_NEED_SOURCE = 1 << 4,
	PRB_NEED_ALL_FRAMES = 1 << 5,  /**< of a table without depth */
	PRB_NEED_IDLE = 1 << 6,	       /**< how long threads have slept */
	PRB_NEED_WAITS = 1 << 7,       /**< what threads wait for */
	PRB_NEED_MODULES = 1 << 8,     /**< which modules Python frames are in */
	PRB_NEED_NATIVE_ALL = 1 << 10, /**< with PRB_NEED_NATIVE: the interpreter's own C frames */
	PRB_NEED_COMMAND = 1 << 9,     /**< the path of the program and its arguments */
	PRB_NEED_VALUES = 1 << 11,     /**< types and texts of variables */
};

enum {
	PRB_COLUMN_HIDDEN = 1 << 0, /**< not in SELECT *; an argument in `table(…)` */
	/** An equality with it reaches the scan; see prb_scan_key_integer(). */
	PRB_COLUMN_KEY = 1 << 1,
	/** A key that says which thread is meant; see needs_keyed. */
	PRB_COLUMN_THREAD = 1 << 2,
	/** Says how deep in its stack a row is: `depth < 5` spares reading the rest. */
	PRB_COLUMN_DEPTH = 1 << 3,
	/** Expensive to read: snapshots do not record it. */
	PRB_COLUMN_COSTLY = 1 << 4,
	/** Seconds since the epoch: a text compared with it is refused. */
	PRB_COLUMN_TIME = 1 << 5,
	/** Values as repr() shows them: a text is equal to the same without its quotes. */
	PRB_COLUMN_REPR = 1 << 8,
	/** A key of which bounds reach the scan too: see prb_scan_range(). */
	PRB_COLUMN_RANGE = 1 << 7,
	/**
	 * A key without whose value there are no rows: in a join, the table that provides it comes
	 * first.
	 */
	PRB_COLUMN_REQUIRED = 1 << 6,

	/** About this library or the machine, not about a target: one scan, whatever is open. */
	PRB_TABLE_GLOBAL = 1 << 0,
	/** Each row is a frame, in the order of depth: LIMIT spares reading the rest. */
	PRB_TABLE_FRAMES = 1 << 1,
	/** Expensive to read, or large: snapshots do not record it. */
	PRB_TABLE_COSTLY = 1 << 2,
	/** May have millions of rows: GROUP BY collects its groups in place of sorting the rows. */
	PRB_TABLE_LONG = 1 << 3,
	/** Each scan asks other machines: only constants reach it as keys, not values of a join. */
	PRB_TABLE_FAR = 1 << 4,
};

struct prb_column {
	const char *name; /**< NULL ends the array */
	enum prb_column_type type;
	const char *doc;  /**< one line, without full stop */
	const char *unit; /**< "s", "bytes", "µs"; NULL if it has none */
	unsigned flags;	  /**< PRB_COLUMN_… */
	unsigned needs;	  /**< enum prb_need, if a statement uses this column */
};

struct prb_scan;

struct prb_table {
	const char *schema, *name; /**< schema "main": can be named without one */
	const char *doc;	   /**< one line, without full stop */
	const struct prb_column *columns;
	unsigned flags; /**< PRB_TABLE_… */
	unsigned needs; /**< enum prb_need, whatever columns are used */
	/** As above, when a PRB_COLUMN_THREAD is constrained. If that is to one thread which is
	 * known before the statement runs, only that thread is read. */
	unsigned needs_keyed;
	double rows; /**< how many there may be, for the order of joins */
	/** Appends rows. */
	struct prb_error *(*scan)(struct prb_scan *scan);
};

/** All tables in the order of the reference; ends with NULL. */
extern const struct prb_table *const prb_tables[];
extern const size_t prb_table_count;

struct prb_schema {
	const char *name, *doc;
};

/** All schemas; ends with a NULL name. */
extern const struct prb_schema prb_schemas[];

/** A table by its names, or NULL; letters' case is ignored. @p schema may be NULL. */
const struct prb_table *prb_table_find(const char *schema, const char *name);

struct prb_page;
struct prb_instant;
struct prb_session;

/** One run over a table, from xFilter to the last row. */
struct prb_scan {
	const struct prb_table *table;
	struct prb_instant *instant; /**< of the target; NULL for PRB_TABLE_GLOBAL tables */
	struct prb_session *session;
	uint64_t position;	  /**< the scan's own: 0 at first, kept between pages */
	void *state;		  /**< the same, for more than a number */
	void (*end)(void *state); /**< set by the scan: ends `state`; NULL: free() does */
	bool more;		  /**< set by the scan: call it again. Cleared before each call. */

	/* The rest belongs to vtab.c and page.c. */
	const struct prb_key *keys;
	unsigned key_count;
	uint64_t used; /**< bit N: column N is asked for; bit 63: all from there on */
	struct prb_page *page;
};

/** Begins the next row. PRB_ERROR_NOMEM, PRB_ERROR_CANCELLED, PRB_ERROR_TIMEOUT. */
struct prb_error *prb_scan_row(struct prb_scan *scan) PRB_MUST_CHECK;

/** PRB_ERROR_CANCELLED, PRB_ERROR_TIMEOUT: for scans that read long without a row. */
struct prb_error *prb_scan_check(struct prb_scan *scan) PRB_MUST_CHECK;

/** True when a table of many rows should set `more` and return. */
bool prb_scan_full(const struct prb_scan *scan);

/** True if the statement reads this column: cells that cost something ask first. */
bool prb_scan_wants(const struct prb_scan *scan, unsigned column);

/**
 * The value that a PRB_COLUMN_KEY column has to equal; false if there is no such constraint, or
 * its value is no integer. SQLite checks the constraint again: ignoring it is only slower.
 */
bool prb_scan_key_integer(const struct prb_scan *scan, unsigned column, int64_t *ret);
/** True if the column is constrained at all, be it by an inequality. Only where needs_keyed is. */
bool prb_scan_keyed(const struct prb_scan *scan, unsigned column);
/** Narrows *from and *to to what a PRB_COLUMN_RANGE column is compared with; both ends count. */
void prb_scan_range(const struct prb_scan *scan, unsigned column, double *from, double *to);
/** As above, for text; valid during the call of the scan. */
bool prb_scan_key_text(const struct prb_scan *scan, unsigned column, const char **ret);

/**
 * Appends condition @p n of the statement on a column, as SQL: "depth" <= 5. Appends nothing for a
 * condition that SQL cannot express; SQLite checks all of them again. False: there is no condition
 * N.
 */
bool prb_scan_condition(const struct prb_scan *scan, unsigned n, struct prb_str *ret);

/* Cells of the row begun last. */
void prb_put_integer(struct prb_scan *scan, unsigned column, int64_t value);
/** As above, NULL if it is negative. */
void prb_put_natural(struct prb_scan *scan, unsigned column, int64_t value);
/** NaN becomes NULL, as SQLite has none. */
void prb_put_real(struct prb_scan *scan, unsigned column, double value);
/** Copies; NULL stays NULL. */
void prb_put_text(struct prb_scan *scan, unsigned column, const char *text);
void prb_put_bytes(struct prb_scan *scan, unsigned column, const char *text, size_t length);
/** Borrows: @p text lives as long as the statement's instant, or is static. */
void prb_put_static(struct prb_scan *scan, unsigned column, const char *text);
/** Copies the formatted text. */
void prb_put_format(struct prb_scan *scan, unsigned column, const char *format, ...)
	PRB_PRINTF(3, 4);

/** A note for the user that is no failure ("nothing recorded: …"); each is printed once. */
void prb_scan_note(struct prb_scan *scan, const char *format, ...) PRB_PRINTF(2, 3);

#endif

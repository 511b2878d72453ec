/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by tables of /proc files: reads one file of a target, and reports if the target
 * lacks it.
 *
 * A fact that cells are made of may be missing: then they are NULL and the row's `_error` names
 * it. Only what ends a query is an error: memory that ran out, and a process that is gone.
 */
#ifndef PRB_SQL_TABLES_SHARED_FACTS_H
#define PRB_SQL_TABLES_SHARED_FACTS_H

#include "base/str.h"
#include "target/proc/text.h"
#include "sql/spec/table.h"

/** The missing facts of a row; ends with prb_missing_deinit(). Starts as {}. */
struct prb_missing {
	struct prb_str names;	/**< of facts that a core or snapshot does not have */
	struct prb_str reasons; /**< of all other failures */
};

void prb_missing_deinit(struct prb_missing *missing);
#define prb_auto_missing __attribute__((cleanup(prb_missing_deinit)))

/** Takes over @p err, which is why @p name is not known; gives it back if it ends the query. */
struct prb_error *prb_missing_add(struct prb_scan *scan, struct prb_missing *missing,
				  struct prb_error *err, const char *name) PRB_MUST_CHECK;
/** Puts what is missing, if anything is: "not in the core file: status, io". */
void prb_missing_put(struct prb_scan *scan, unsigned column, const struct prb_missing *missing);

/** Reads a file of /proc/PID into @p ret, which stays as it is if the target does not have it. */
struct prb_error *prb_fact_file(struct prb_scan *scan, struct prb_missing *missing,
				struct prb_str *ret, const char *name, ...) PRB_MUST_CHECK
	PRB_PRINTF(4, 5);
/** As above, for a link. */
struct prb_error *prb_fact_link(struct prb_scan *scan, struct prb_missing *missing,
				struct prb_str *ret, const char *name, ...) PRB_MUST_CHECK
	PRB_PRINTF(4, 5);

/**
 * Takes over @p err, the reason why a table has no rows: *told is false if there is one, and the
 * user gets a note. Gives it back if it ends the query.
 */
struct prb_error *prb_fact_told(struct prb_scan *scan, struct prb_error *err,
				bool *told) PRB_MUST_CHECK;

/**
 * Reads a file that a whole table is made of. If the target does not have it, *told is false and
 * the user gets a note; an unreadable live process is an error.
 */
struct prb_error *prb_fact_table(struct prb_scan *scan, struct prb_str *ret, bool *told,
				 const char *name) PRB_MUST_CHECK;
enum prb_fact_folder { PRB_FACT_TASKS, PRB_FACT_FDS };

/**
 * As above, for the numbers in a folder, one a line. They are read once for all pages of a scan,
 * and borrowed from the instant; "" if the target does not have them.
 */
struct prb_error *prb_fact_list(struct prb_scan *scan, enum prb_fact_folder folder,
				const char **ret) PRB_MUST_CHECK;

/** The clock that a target's ticks are of. */
struct prb_fact_clock {
	double boot;  /**< of its machine, seconds since the epoch */
	double ticks; /**< in a second */
};

/** False if the target does not have it: ticks then are of the usual length, and boot is 0. */
bool prb_fact_clock(struct prb_scan *scan, struct prb_fact_clock *ret);

/** Appends the name of a user of the target's machine; nothing if it has none. */
void prb_fact_user(struct prb_scan *scan, int64_t uid, struct prb_str *ret);

/** The next line of *text, which moves behind it; false at the end. It is not terminated. */
bool prb_next_line(const char **text, const char **line, size_t *length);

/** Puts the number behind "NAME:" in a text as that of status, times @p unit. */
void prb_put_field(struct prb_scan *scan, unsigned column, const char *text, const char *name,
		   int64_t unit);
/** Puts the last of the numbers behind "NAME:". */
void prb_put_last_number(struct prb_scan *scan, unsigned column, const char *text,
			 const char *name);
/** Puts the words behind "NAME:". */
void prb_put_field_text(struct prb_scan *scan, unsigned column, const char *text, const char *name);

/** "other", "fifo", … for a number of sched(7); NULL if it is unknown. */
const char *prb_policy_name(int64_t policy);

#endif

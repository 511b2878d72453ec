/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by tables of kernel threads: iteration and their stat files. */
#ifndef PRB_SQL_TABLES_SHARED_THREAD_ROWS_H
#define PRB_SQL_TABLES_SHARED_THREAD_ROWS_H

#include "sql/tables/shared/facts.h"

/** A thread, with what its line of stat says. */
struct prb_thread_row {
	struct prb_scan *scan;
	pid_t tid;
	int64_t numbers[PRB_STAT_NUMBERS];
	char state;
	struct prb_str name;
	/** A core or snapshot made the line up: only ids, state and times that are not 0 count. */
	bool made_up;
	struct prb_fact_clock clock;
	bool clock_known;
	struct prb_missing missing;
};

/**
 * Calls @p put for each thread that the key @p column asks for, with its row begun, in pages.
 * Threads that end meanwhile are left out.
 */
struct prb_error *prb_thread_rows_scan(struct prb_scan *scan, unsigned column,
				       struct prb_error *(*put)(struct prb_thread_row *task))
	PRB_MUST_CHECK;

/** Reads task/TID/@p name; if there is none, `missing` says so. */
struct prb_error *prb_thread_file(struct prb_thread_row *task, struct prb_str *ret,
				  const char *name) PRB_MUST_CHECK;

#endif

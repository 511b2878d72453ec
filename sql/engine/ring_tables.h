/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The source of tables of rings: each ring of a session's targets is a table, built from its
 * header. Some have views, which are tables too (sql/spec/collected.h).
 *
 * Threading and ownership: as the session. Errors: PRB_ERROR_UNSUPPORTED for a ring whose names are
 * not valid in SQL, and those of rings/ring.h.
 */
#ifndef PRB_SQL_ENGINE_RING_TABLES_H
#define PRB_SQL_ENGINE_RING_TABLES_H

#include "rings/ring.h"
#include "sql/spec/collected.h"
#include "sql/spec/table.h"
#include "target/target.h"

/** The columns before those of the ring. */
enum {
	PRB_RING_TABLE_TIME,
	PRB_RING_TABLE_PID,
	PRB_RING_TABLE_TID,
	PRB_RING_TABLE_RANK,
	PRB_RING_TABLE_ROLE,
	PRB_RING_TABLE_LEAD
};

/** Most columns of a table: the ring's, and the same again for those of its history. */
enum { PRB_RING_TABLE_COLUMNS = PRB_RING_TABLE_LEAD + 2 * PRB_RING_COLUMNS };

struct prb_ring_table {
	struct prb_table spec;
	struct prb_column columns[PRB_RING_TABLE_COLUMNS + 1];
	/** Origin of each column: one of the enum, or PRB_RING_TABLE_LEAD + an index in `own`. */
	uint8_t from[PRB_RING_TABLE_COLUMNS];
	char schema[PRB_RING_NAME], name[PRB_RING_NAME];
	/** Of the ring, and behind them those that only its history has (rings/history.h). */
	struct prb_ring_column own[2 * PRB_RING_COLUMNS];
	uint32_t own_count; /**< of the ring */
	bool history;	    /**< older rows are read from the rings of its history */
	unsigned steps;	    /**< index of the column that says of how many rows a row is */
	char source_schema[PRB_RING_NAME], source_name[PRB_RING_NAME]; /**< of the ring */
	int filter;	   /**< column of the ring that must equal `value`; -1: none */
	const char *value; /**< static */
};

struct prb_ring_tables {
	struct prb_ring_table **items;
	size_t count, capacity;
};

struct prb_session;

/**
 * Adds tables for the new rings of @p target. If the target is a single ring, an error says why it
 * cannot be a table; of several rings, each such ring gets a warning.
 */
struct prb_error *prb_ring_tables_add(struct prb_session *session,
				      struct prb_target *target) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The source of tables of rings: each ring of a session's targets is a table, built from its
 * header. Some have views, which are tables too (sql/spec/collected.h).
 *
 * Threading and ownership: as the session. Errors: PRB_ERROR_UNSUPPORTED for a ring whose names
 * SQL cannot have, and those of rings/ring.h.
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

struct prb_ring_table {
	struct prb_table spec;
	struct prb_column columns[PRB_RING_TABLE_LEAD + PRB_RING_COLUMNS + 1];
	/** What each column is: one of the enum, or that + the index of a column of the ring. */
	uint8_t from[PRB_RING_TABLE_LEAD + PRB_RING_COLUMNS];
	char schema[PRB_RING_NAME], name[PRB_RING_NAME];
	struct prb_ring_column own[PRB_RING_COLUMNS]; /**< of the ring */
	uint32_t own_count;
	char source_schema[PRB_RING_NAME], source_name[PRB_RING_NAME]; /**< of the ring */
	int filter;	   /**< column of the ring that has to be `value`; -1: none */
	const char *value; /**< static */
};

struct prb_ring_tables {
	struct prb_ring_table **items;
	size_t count, capacity;
};

struct prb_session;

/**
 * Adds the tables of @p target's rings that are new. If the target is one ring, an error says why
 * there can be no table; of several rings, those that can be none are warned of.
 */
struct prb_error *prb_ring_tables_add(struct prb_session *session,
				      struct prb_target *target) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Tables of rings: each ring among a session's targets is a table, built from its header.
 *
 * Threading and ownership: as the session. Errors: PRB_ERROR_UNSUPPORTED for a ring whose names
 * SQL cannot have, and those of records/ring.h.
 */
#ifndef PRB_SQL_ENGINE_RING_TABLES_H
#define PRB_SQL_ENGINE_RING_TABLES_H

#include "records/ring.h"
#include "sql/spec/table.h"
#include "target/target.h"

/** The columns before those of the ring. */
enum { PRB_RING_TABLE_TIME, PRB_RING_TABLE_PID, PRB_RING_TABLE_TID, PRB_RING_TABLE_LEAD };

struct prb_ring_table {
	struct prb_table spec;
	struct prb_column columns[PRB_RING_TABLE_LEAD + PRB_RING_COLUMNS + 1];
	char schema[PRB_RING_NAME], name[PRB_RING_NAME];
	struct prb_ring_column own[PRB_RING_COLUMNS];
	bool declared; /**< to SQLite */
};

struct prb_ring_tables {
	struct prb_ring_table **items;
	size_t count, capacity;
};

/** Adds the table of @p target, if that is a ring and its table is new. */
struct prb_error *prb_ring_tables_add(struct prb_ring_tables *tables,
				      const struct prb_target *target) PRB_MUST_CHECK;
void prb_ring_tables_free(struct prb_ring_tables *tables);

/** By its names, or NULL. */
const struct prb_table *prb_ring_tables_find(const struct prb_ring_tables *tables,
					     const char *schema, const char *name);

struct prb_session;

/** The session's table number @p index of rings, or NULL behind the last. */
const struct prb_table *prb_session_ring_table(const struct prb_session *session, size_t index);

#endif

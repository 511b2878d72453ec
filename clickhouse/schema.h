/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The tables of a database that rows of rings go into: SCHEMA.NAME is SCHEMA_NAME there.
 *
 * A table is made when its first ring comes, and gets the additional columns of later rings, and of
 * later versions of probing. A column that is there with another type stays as it is: that ring's
 * is NAME__integer, NAME__real or NAME__text. Nothing is ever dropped.
 *
 * Names come from processes: only letters, digits and underscores reach a statement.
 *
 * Threading: one thread at a time. Ownership: the table is the caller's.
 */
#ifndef PRB_CLICKHOUSE_SCHEMA_H
#define PRB_CLICKHOUSE_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "clickhouse/server.h"
#include "rings/ring.h"

enum {
	PRB_TABLE_NAME = 2 * PRB_RING_NAME,
	PRB_TABLE_COLUMN = PRB_RING_NAME + 16,
	PRB_TABLE_COLUMNS = 256, /**< more of a table are refused */
	PRB_TABLE_NOT_THERE = 255,
};

struct prb_table_column {
	char name[PRB_TABLE_COLUMN];
	enum prb_ring_type type;
};

struct prb_clickhouse_table {
	char name[PRB_TABLE_NAME];
	PRB_VEC(struct prb_table_column) columns; /**< without the columns of every table */
	PRB_VEC(struct prb_table_column) others;  /**< of types that rings do not have */
	uint32_t lead;				  /**< bit N: it has number N of those */
	bool made;				  /**< by us, just now: it has no rows */
	bool known;
};

/** For each column of a ring its place in the table, in the ring's order; PRB_TABLE_NOT_THERE: it
 * says what the table has for each row. */
struct prb_table_places {
	uint8_t of[PRB_RING_COLUMNS];
};

/** PRB_ERROR_UNSUPPORTED if the ring's names are none. @p ours: the schemas of what we read
 * ourselves of processes are allowed, too. */
struct prb_error *prb_table_name(const struct prb_ring_header *header, bool ours,
				 char ret[PRB_TABLE_NAME]) PRB_MUST_CHECK;

/** Makes or extends the table for a ring, which is where @p places is of. @p ours: columns with the
 * names that each table has are those. */
struct prb_error *prb_table_prepare(struct prb_clickhouse *server,
				    struct prb_clickhouse_table *table,
				    const struct prb_ring_header *header,
				    const struct prb_ring_column *columns, bool ours,
				    struct prb_table_places *places) PRB_MUST_CHECK;
void prb_table_deinit(struct prb_clickhouse_table *table);

/** Removes the rows of a table that were sent over @p days days ago, whole days at once. */
struct prb_error *prb_table_retain(struct prb_clickhouse *server,
				   const struct prb_clickhouse_table *table,
				   int days) PRB_MUST_CHECK;

/** Appends "INSERT INTO … (…) FORMAT RowBinary". */
void prb_table_put_insert(const struct prb_clickhouse *server,
			  const struct prb_clickhouse_table *table, struct prb_str *s);

/** The process of a row and what is known of it, which each table has. */
struct prb_row_place {
	const char *job, *host, *role; /**< role: NULL if none */
	int64_t rank;		       /**< -1: none */
	uint32_t uid;
	uint64_t ring; /**< names the ring among all of the database */
	uint16_t day;  /**< on which it is sent, days since the epoch */
};

/** Appends a row of a ring with @p count columns, in RowBinary. */
void prb_table_put_row(const struct prb_clickhouse_table *table,
		       const struct prb_table_places *places, const struct prb_row_place *place,
		       const struct prb_ring_column *columns, uint32_t count,
		       const struct prb_ring_item *row, struct prb_str *s);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the tables of interpreters: the interpreters of a target, read once per
 * statement.
 */
#ifndef PRB_SQL_TABLES_SHARED_INTERPRETERS_H
#define PRB_SQL_TABLES_SHARED_INTERPRETERS_H

#include "base/vec.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"

struct prb_interpreter {
	struct prb_python *py;
	struct prb_mem *mem; /**< the statement's view */
	struct prb_interp state;
	unsigned runtime; /**< index of its Python; more than one is rare */
	int64_t threads;
	uint64_t holder; /**< thread id of the GIL holder; 0: none, or unknown */
};

struct prb_interpreters {
	PRB_VEC(struct prb_interpreter) list; /**< the main one first */
};

/** The interpreters of the scan's target; they live as long as the statement's instant. */
struct prb_error *prb_interpreters_read(struct prb_scan *scan,
					const struct prb_interpreters **ret) PRB_MUST_CHECK;

/** True if the rows of an interpreter are asked for: @p column is the table's key with its id. */
bool prb_interpreter_wanted(const struct prb_scan *scan, unsigned column,
			    const struct prb_interpreter *interpreter);

/** For bulk reads: the target's own, unless a snapshot is recorded, which is made of the view. */
struct prb_mem *prb_interpreter_bulk(const struct prb_scan *scan,
				     const struct prb_interpreter *interpreter);

/** Takes over @p err: its words go into the row's cell. Gives it back if it ends the query. */
struct prb_error *prb_put_reason(struct prb_scan *scan, unsigned column,
				 struct prb_error *err) PRB_MUST_CHECK;

#endif

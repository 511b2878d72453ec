/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Records the data of all tables, for a snapshot. */
#ifndef PRB_SQL_ENGINE_RECORD_H
#define PRB_SQL_ENGINE_RECORD_H

#include "sql/engine/session.h"

enum prb_record_values {
	PRB_RECORD_NO_VALUES,
	PRB_RECORD_VARIABLES,
	PRB_RECORD_OBJECTS, /**< also all objects that the garbage collector tracks */
};

/**
 * Scans all tables of the session's target at one instant, so that its recorder notes their reads.
 * Costly columns (PRB_COLUMN_COSTLY) and tables (PRB_TABLE_COSTLY) are left out, except those of
 * objects with PRB_RECORD_OBJECTS. A table that cannot be read is no error: it cannot be read from
 * the snapshot either. Only unreadable threads are an error, since every snapshot has them.
 * *ret_threads: their number.
 */
struct prb_error *prb_record(struct prb_session *session, enum prb_record_values values,
			     size_t *ret_threads) PRB_MUST_CHECK;

#endif

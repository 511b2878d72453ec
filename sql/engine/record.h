/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Records everything that the tables would read, for a snapshot.
 */
#ifndef PRB_SQL_ENGINE_RECORD_H
#define PRB_SQL_ENGINE_RECORD_H

#include "sql/engine/session.h"

enum prb_record_values {
	PRB_RECORD_NO_VALUES,
	PRB_RECORD_VARIABLES,
	PRB_RECORD_OBJECTS, /**< also all objects that the garbage collector knows */
};

/**
 * Scans all tables of the session's target, one instant for all of them, so that its recorder
 * notes what they read. Costly columns (PRB_COLUMN_COSTLY) and tables (PRB_TABLE_COSTLY) are left
 * out, except those of objects with PRB_RECORD_OBJECTS. A table that cannot be read is no error: it
 * cannot be read from the snapshot either. The error is that of the threads, which every snapshot
 * has. *ret_threads is how many.
 */
struct prb_error *prb_record(struct prb_session *session, enum prb_record_values values,
			     size_t *ret_threads) PRB_MUST_CHECK;

#endif

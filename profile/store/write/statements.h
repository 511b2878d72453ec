/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The SQL that writes the database of a recording.
 *
 * Threading: one thread at a time. Internal to profile/store/write/.
 */
#ifndef PRB_PROFILE_STORE_WRITE_STATEMENTS_H
#define PRB_PROFILE_STORE_WRITE_STATEMENTS_H

#include "profile/store/write/database.h"

struct prb_error *prb_store_sql_open(struct prb_store_file *file, const char *path) PRB_MUST_CHECK;
void prb_store_sql_close(struct prb_store_file *file);

/** Runs statements whose results are of no interest. */
struct prb_error *prb_store_sql_run(struct prb_store_file *file, const char *sql) PRB_MUST_CHECK;

/**
 * Runs a prepared statement once with these values: 'i' int64_t, 'd' double, 't' const char *
 * (NULL: NULL), 'b' const void * and size_t, one letter of @p types each.
 */
struct prb_error *prb_store_sql_put(struct prb_store_file *file, enum prb_store_statement number,
				    const char *types, ...) PRB_MUST_CHECK;

#endif

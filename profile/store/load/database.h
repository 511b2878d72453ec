/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Opening the database of an untrusted recording.
 *
 * Threading: one thread at a time. Internal to profile/store/load/.
 */
#ifndef PRB_PROFILE_STORE_LOAD_DATABASE_H
#define PRB_PROFILE_STORE_LOAD_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct prb_load_file {
	/** Closed after the database: closing a descriptor of a file drops all locks on it. */
	int fd;
	sqlite3 *db;
	unsigned optional; /**< the tables that it has, bits of the schema */
};

/**
 * Opens it for reading, and nothing else: format, tables and limits are checked. All that is read
 * is of one moment, also while it is still being written. The result is to be ended always.
 */
struct prb_error *prb_load_file_open(struct prb_load_file *file, const char *path) PRB_MUST_CHECK;
/** As above, of the bytes that @p fd has, which are read at once: a file without a name. */
struct prb_error *prb_load_file_open_copy(struct prb_load_file *file, int fd) PRB_MUST_CHECK;
void prb_load_file_close(struct prb_load_file *file);

/** Prepares a statement that reads. */
struct prb_error *prb_load_file_prepare(sqlite3 *db, const char *sql,
					sqlite3_stmt **ret) PRB_MUST_CHECK;

/** Goes to the next row; *row is false after the last one. */
struct prb_error *prb_load_file_step(sqlite3_stmt *stmt, bool *row) PRB_MUST_CHECK;

/**
 * True if the writer of the database at @p path, open at @p fd and locked for reading, was killed
 * within a change: there is a journal, which is opened, and no process is about to write.
 */
bool prb_load_file_is_cut_off(int fd, const char *path, int *ret_journal);

/**
 * A copy in memory of the database that is open at @p fd, as it was before the change of the
 * journal; *ret is sqlite3_malloc()'s.
 */
struct prb_error *prb_load_file_recover(int fd, int journal, unsigned char **ret,
					size_t *ret_size) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The database that a recording is written to: making it, and writing batches.
 *
 * It is made under a random name, and gets its own when the recording begins. Its journal is made
 * beforehand too, so that nothing that another user put in its place is opened.
 *
 * Threading: one thread at a time. Internal to profile/store/write/.
 */
#ifndef PRB_PROFILE_STORE_WRITE_DATABASE_H
#define PRB_PROFILE_STORE_WRITE_DATABASE_H

#include <sqlite3.h>

#include "base/new_file.h"
#include "profile/store/write/batch.h"
#include "profile/recording/steps.h"
#include "profile/store/write/totals.h"

struct prb_store_when;

enum prb_store_statement {
	PRB_STORE_FUNCTION,
	PRB_STORE_FRAME,
	PRB_STORE_STACK,
	PRB_STORE_WAIT,
	PRB_STORE_THREAD,
	PRB_STORE_CHUNK,
	PRB_STORE_TOTAL,
	PRB_STORE_PROCESS,
	PRB_STORE_RECORDING,
	PRB_STORE_UNSTOPPED,
	PRB_STORE_SOURCE,
	PRB_STORE_IMAGE,
	PRB_STORE_ORIGIN,
	PRB_STORE_RENAMED,
	PRB_STORE_STATEMENTS,
};

/** The chunks that were written, and how small later ones are to be; see growing_chunk.h. */
struct prb_store_chunks {
	int64_t next;	  /**< number of the growing chunk */
	int64_t bytes;	  /**< of all that are complete */
	int64_t begin;	  /**< of the growing chunk; < 0: it is empty */
	int64_t absorbed; /**< number of the last batch's chunk that is in `steps`; < 0: none */
	struct prb_steps steps; /**< what grows, put together; `step` 0: nothing is */
};

struct prb_store_file {
	/**
	 * Named when the recording begins. Its descriptor holds a lock that shows other recorders
	 * that we write; it is closed last.
	 */
	struct prb_new_file file;
	char *journal;
	sqlite3 *db; /**< NULL before it begins */
	sqlite3_stmt *statements[PRB_STORE_STATEMENTS];
	struct prb_store_chunks chunks;
	struct prb_store_when *when; /**< borrowed (condition.h); NULL: all is kept */
	struct prb_totals totals;
	int64_t part;				    /**< that the totals are of */
	int64_t totals_s;			    /**< how long a part is */
	PRB_VEC(struct prb_profile_thread) threads; /**< as they were written */
};

/** Makes the file. The result is to be ended always. */
struct prb_error *prb_store_file_create(struct prb_store_file *file,
					const char *path) PRB_MUST_CHECK;
/** Gives it its name and opens it. */
struct prb_error *prb_store_file_begin(struct prb_store_file *file) PRB_MUST_CHECK;
/**
 * Writes a batch, or nothing of it. PRB_ERROR_TIMEOUT if another program held the database: it may
 * be tried again.
 */
struct prb_error *prb_store_file_write(struct prb_store_file *file,
				       const struct prb_batch *batch) PRB_MUST_CHECK;
/** After the last batch: all of it is on the disk, and the journal gone. */
struct prb_error *prb_store_file_finish(struct prb_store_file *file) PRB_MUST_CHECK;
void prb_store_file_deinit(struct prb_store_file *file);

#endif

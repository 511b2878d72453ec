/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/write/rename_stacks.h"

#include "base/cleanup.h"
#include "profile/store/chunk.h"
#include "profile/store/write/statements.h"

typedef PRB_VEC(struct prb_run) run_list;

static struct prb_error *rename_totals(struct prb_store_file *file, const struct prb_batch *b)
{
	PRB_TRY(prb_store_sql_run(
		file, "CREATE TEMP TABLE renamed (old INTEGER PRIMARY KEY, new INTEGER)"));
	for (size_t i = 0; i < b->renamed_count; i++)
		PRB_TRY(prb_store_sql_put(file, PRB_STORE_RENAMED, "ii", (int64_t)i,
					  (int64_t)b->renamed[i]));
	return prb_store_sql_run(
		file,
		"CREATE TEMP TABLE merged AS SELECT part, new, state, sum(samples), sum(cpu_ns), "
		"sum(wall_ns), sum(runqueue_ns) FROM totals JOIN renamed ON old = stack "
		"GROUP BY 1, 2, 3;"
		"DELETE FROM totals; INSERT INTO totals SELECT * FROM merged;"
		"DELETE FROM functions; DELETE FROM frames; DELETE FROM stacks;"
		"DELETE FROM images; DELETE FROM origins");
}

/* Renames stacks in the statement's current chunk. */
static struct prb_error *rename_chunk(struct prb_store_file *file, const struct prb_batch *b,
				      sqlite3_stmt *stmt, run_list *runs)
{
	prb_auto_str struct prb_str data = {};
	struct prb_chunk chunk = {
		.begin = sqlite3_column_int64(stmt, 1),
		.unit = sqlite3_column_int64(stmt, 2),
		.runs = (size_t)sqlite3_column_int64(stmt, 3),
		.threads = b->threads.count,
		.stacks = b->renamed_count,
		.waits = b->all_waits,
	};

	runs->count = 0;
	if (!prb_vec_reserve(runs, chunk.runs))
		return prb_error_nomem();
	PRB_TRY(prb_chunk_decode(&chunk, sqlite3_column_blob(stmt, 4),
				 (size_t)sqlite3_column_bytes(stmt, 4), runs->items));
	for (size_t i = 0; i < chunk.runs; i++)
		runs->items[i].stack = b->renamed[runs->items[i].stack];
	chunk.stacks = b->all_stacks;
	PRB_TRY(prb_chunk_encode(&chunk, runs->items, &data));
	return prb_store_sql_put(file, PRB_STORE_CHUNK, "iiiib", sqlite3_column_int64(stmt, 0),
				 chunk.begin, chunk.unit, (int64_t)chunk.runs,
				 (const void *)data.data, data.length);
}

/* One by one, so that no statement reads what another changes. */
static struct prb_error *rename_chunks(struct prb_store_file *file, const struct prb_batch *b)
{
	struct prb_error *err = NULL;
	sqlite3_stmt *stmt = NULL;
	run_list runs = {};

	if (sqlite3_prepare_v2(file->db,
			       "SELECT chunk, begin_ns, unit_ns, runs, data FROM chunks "
			       "WHERE chunk = ?",
			       -1, &stmt, NULL))
		return prb_error_nomem();
	for (int64_t i = 0; i <= file->chunks.next + 1 && !err; i++) {
		sqlite3_bind_int64(stmt, 1, i);
		if (sqlite3_step(stmt) == SQLITE_ROW)
			err = rename_chunk(file, b, stmt, &runs);
		if (sqlite3_reset(stmt) && !err)
			err = prb_error_create(PRB_ERROR_FAILED, "cannot read %s: %s",
					       file->file.path, sqlite3_errmsg(file->db));
	}
	sqlite3_finalize(stmt);
	prb_vec_free(&runs);
	return err;
}

struct prb_error *prb_store_rename_rows(struct prb_store_file *file, const struct prb_batch *b)
{
	PRB_TRY(rename_chunks(file, b));
	return rename_totals(file, b);
}

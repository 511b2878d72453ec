/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/write/statements.h"

#include <stdarg.h>

#include "base/cleanup.h"
#include "base/text.h"

/* How long another program may hold the database before a batch is put off. */
enum { BUSY_MS = 200 };

static const char *const texts[PRB_STORE_STATEMENTS] = {
	[PRB_STORE_FUNCTION] = "INSERT INTO functions VALUES (?, ?, ?, ?, ?, ?)",
	[PRB_STORE_FRAME] = "INSERT INTO frames VALUES (?, ?, ?)",
	[PRB_STORE_STACK] = "INSERT INTO stacks VALUES (?, ?, ?, ?)",
	[PRB_STORE_WAIT] = "REPLACE INTO waits VALUES (?, ?, ?, nullif(?, -1))",
	[PRB_STORE_THREAD] = "REPLACE INTO threads VALUES (?, ?, ?, ?, ?, ?, ?)",
	[PRB_STORE_CHUNK] = "REPLACE INTO chunks VALUES (?, ?, ?, ?, ?)",
	[PRB_STORE_TOTAL] = "REPLACE INTO totals VALUES (?, ?, ?, ?, ?, ?, ?)",
	[PRB_STORE_PROCESS] = "REPLACE INTO processes VALUES (?, ?, ?, ?, nullif(?, -1))",
	[PRB_STORE_RECORDING] =
		"REPLACE INTO recording (rowid, probing, system, started, "
		"duration_ns, rate, tid, native, ended, totals_s, times, late, missed, "
		"unreadable, stops, stopped_again, pause_p50_us, pause_p99_us, "
		"pause_max_us, pause_total_us, own_cpu_ns, ring_s, tasks, unseen_children_ns, "
		"condition, around_s) "
		"VALUES (1, ?, ?, ?, ?, "
		"?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0.0), ?, ?, "
		"?, nullif(?, 0.0))",
	[PRB_STORE_UNSTOPPED] = "REPLACE INTO unstopped (rowid, samples) VALUES (1, ?)",
	[PRB_STORE_SOURCE] = "INSERT OR IGNORE INTO source VALUES (?, ?, ?)",
	[PRB_STORE_IMAGE] = "INSERT INTO images VALUES (?, ?, ?, ?, ?, ?)",
	[PRB_STORE_ORIGIN] = "INSERT INTO origins VALUES (?, ?, ?)",
	[PRB_STORE_RENAMED] = "INSERT INTO temp.renamed VALUES (?, ?)",
};

static struct prb_error *failure(const struct prb_store_file *file, int rc)
{
	enum prb_error_code code = rc == SQLITE_BUSY	? PRB_ERROR_TIMEOUT
				   : rc == SQLITE_NOMEM ? PRB_ERROR_NOMEM
							: PRB_ERROR_FAILED;
	struct prb_error *err;
	const char *what = rc == SQLITE_FULL ? "the disk is full" : sqlite3_errmsg(file->db);

	if (code == PRB_ERROR_NOMEM)
		return prb_error_nomem();
	err = prb_error_create(code, "cannot write %s: %s", file->file.path, what);
	return file->file.temporary ? err
				    : prb_error_hint(err, "'probing %s perf' shows what it holds",
						     file->file.path);
}

struct prb_error *prb_store_sql_open(struct prb_store_file *file, const char *path)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	int rc = sqlite3_open_v2(path, &file->db, flags, NULL);

	if (rc)
		return failure(file, rc);
	sqlite3_busy_timeout(file->db, BUSY_MS);
	return NULL;
}

void prb_store_sql_close(struct prb_store_file *file)
{
	for (unsigned i = 0; i < PRB_STORE_STATEMENTS; i++)
		sqlite3_finalize(prb_steal(&file->statements[i]));
	sqlite3_close(prb_steal(&file->db));
}

struct prb_error *prb_store_sql_run(struct prb_store_file *file, const char *sql)
{
	int rc = sqlite3_exec(file->db, sql, NULL, NULL, NULL);

	return rc ? failure(file, rc) : NULL;
}

static bool is_utf8(const char *text)
{
	uint32_t code;

	while (*text) {
		text += prb_text_decode(text, &code);
		if (code == PRB_TEXT_INVALID)
			return false;
	}
	return true;
}

/* Programs refuse texts that are not UTF-8: what is none is escaped. */
static int bind_text(sqlite3_stmt *stmt, int index, const char *text)
{
	prb_auto_str struct prb_str escaped = {};

	if (!text)
		return sqlite3_bind_null(stmt, index);
	if (is_utf8(text))
		return sqlite3_bind_text(stmt, index, text, -1, SQLITE_TRANSIENT);
	prb_text_escape(&escaped, text);
	return escaped.failed ? SQLITE_NOMEM
			      : sqlite3_bind_text(stmt, index, prb_str_text(&escaped), -1,
						  SQLITE_TRANSIENT);
}

static int bind_one(sqlite3_stmt *stmt, int index, char type, va_list *args)
{
	const void *data;

	switch (type) {
	case 'i':
		return sqlite3_bind_int64(stmt, index, va_arg(*args, int64_t));
	case 'd':
		return sqlite3_bind_double(stmt, index, va_arg(*args, double));
	case 't':
		return bind_text(stmt, index, va_arg(*args, const char *));
	default:
		data = va_arg(*args, const void *);
		return sqlite3_bind_blob64(stmt, index, data, va_arg(*args, size_t), SQLITE_STATIC);
	}
}

struct prb_error *prb_store_sql_put(struct prb_store_file *file, enum prb_store_statement number,
				    const char *types, ...)
{
	sqlite3_stmt **stmt = &file->statements[number];
	int rc = SQLITE_OK, index = 0;
	va_list args;

	if (!*stmt)
		rc = sqlite3_prepare_v3(file->db, texts[number], -1, SQLITE_PREPARE_PERSISTENT,
					stmt, NULL);
	va_start(args, types);
	for (; !rc && *types; types++)
		rc = bind_one(*stmt, ++index, *types, &args);
	va_end(args);
	if (!rc) {
		sqlite3_step(*stmt);
		rc = sqlite3_reset(*stmt);
	}
	return rc ? failure(file, rc) : NULL;
}

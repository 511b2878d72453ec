/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/load/database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/store/load/sqlite_files.h"
#include "profile/store/schema.h"
#include "target/recorded/recorded.h"

enum {
	HEADER = 100, /* bytes, of an SQLite file */
	BUSY_MS = 5000,
	MOST_COPIED = 1 << 30, /* bytes of a database that is read at once */
	MOST_OBJECTS = 1000,   /* tables, indices and views that others may have added */
};

static const struct {
	int limit, value;
} limits[] = {
	{SQLITE_LIMIT_LENGTH, 128 * 1024 * 1024},
	{SQLITE_LIMIT_SQL_LENGTH, 65536},
	{SQLITE_LIMIT_COLUMN, 100},
	{SQLITE_LIMIT_EXPR_DEPTH, 20},
	{SQLITE_LIMIT_COMPOUND_SELECT, 5},
	{SQLITE_LIMIT_VDBE_OP, 25000},
	{SQLITE_LIMIT_FUNCTION_ARG, 10},
	{SQLITE_LIMIT_ATTACHED, 0},
	{SQLITE_LIMIT_TRIGGER_DEPTH, 1},
	{SQLITE_LIMIT_WORKER_THREADS, 0},
};

static struct prb_error *failure(sqlite3 *db)
{
	int rc = sqlite3_errcode(db) & 0xff;

	if (rc == SQLITE_NOMEM)
		return prb_error_nomem();
	if (rc == SQLITE_BUSY)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT, "another program is writing to it"),
			"end its transaction, and try again");
	return prb_error_create(PRB_ERROR_BAD_DATA, "%s", sqlite3_errmsg(db));
}

struct prb_error *prb_load_file_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
	return sqlite3_prepare_v2(db, sql, -1, ret, NULL) ? failure(db) : NULL;
}

struct prb_error *prb_load_file_step(sqlite3_stmt *stmt, bool *row)
{
	int rc = sqlite3_step(stmt);

	*row = rc == SQLITE_ROW;
	return *row || rc == SQLITE_DONE ? NULL : failure(sqlite3_db_handle(stmt));
}

static uint32_t big_endian(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static struct prb_error *bad(const char *what)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "this is no recording of probing: %s", what);
}

/* Where SQLite's documentation says that things are in the first bytes. */
static struct prb_error *check_header(int fd)
{
	enum { WRITE_VERSION = 18, READ_VERSION, USER_VERSION = 60, APPLICATION = 68 };
	unsigned char header[HEADER];
	uint32_t format;

	if (pread(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header, "SQLite format 3", 16) != 0)
		return bad("it is no SQLite database");
	if (big_endian(header + APPLICATION) != PRB_RECORDED_APPLICATION)
		return bad("it is a database of another program");
	format = big_endian(header + USER_VERSION);
	if (format != PRB_SCHEMA_FORMAT)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "it has format %u, and this version of "
						       "probing reads format %d",
						       format, PRB_SCHEMA_FORMAT),
				      "the version that wrote it can read it");
	if (header[WRITE_VERSION] != 1 || header[READ_VERSION] != 1)
		return prb_error_hint(
			bad("it has a write-ahead log"),
			"sqlite3 FILE 'PRAGMA journal_mode = DELETE' takes that away");
	return NULL;
}

/* Nothing but reading the tables that we know. */
static int authorize(void *context, int action, const char *table, const char *column,
		     const char *schema, const char *trigger)
{
	(void)context;
	(void)column;
	(void)schema;
	if (trigger)
		return SQLITE_DENY;
	if (action == SQLITE_SELECT)
		return SQLITE_OK;
	if (action != SQLITE_READ)
		return SQLITE_DENY;
	for (const struct prb_schema_table *t = prb_schema_tables; t->name; t++)
		if (!strcasecmp(table, t->name))
			return SQLITE_OK;
	return strcasecmp(table, "sqlite_master") ? SQLITE_DENY : SQLITE_OK;
}

static void confine(sqlite3 *db)
{
	static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW,
				  SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_WRITABLE_SCHEMA,
				  SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION};

	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(off); i++)
		sqlite3_db_config(db, off[i], 0, NULL);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(limits); i++)
		sqlite3_limit(db, limits[i].limit, limits[i].value);
	sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; BEGIN", NULL, NULL,
		     NULL);
	sqlite3_set_authorizer(db, authorize, NULL);
}

static const struct prb_schema_table *table_of(const char *name)
{
	for (const struct prb_schema_table *t = prb_schema_tables; name && t->name; t++)
		if (!strcasecmp(name, t->name))
			return t;
	return NULL;
}

static size_t count_required(void)
{
	size_t count = 0;

	for (const struct prb_schema_table *t = prb_schema_tables; t->name; t++)
		count += !t->optional;
	return count;
}

static struct prb_error *check_object(sqlite3_stmt *stmt, size_t *ours, unsigned *optional)
{
	const char *type = (const char *)sqlite3_column_text(stmt, 0);
	const char *name = (const char *)sqlite3_column_text(stmt, 1);
	const char *sql = (const char *)sqlite3_column_text(stmt, 2);
	const struct prb_schema_table *table = table_of(name);

	if (!table)
		return NULL;
	if (!type || strcmp(type, "table") != 0 || !sql || strcmp(sql, table->sql) != 0)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"this is no recording of probing: its '%s' is not the "
					"table that probing makes",
					table->name);
	*ours += !table->optional;
	*optional |= table->optional;
	return NULL;
}

/* Its tables are ours to the letter; what it has besides is not looked at. */
static struct prb_error *check_tables(sqlite3_stmt *stmt, unsigned *optional)
{
	size_t ours = 0, objects = 0;
	bool row;

	for (;;) {
		PRB_TRY(prb_load_file_step(stmt, &row));
		if (!row)
			break;
		if (++objects > MOST_OBJECTS)
			return bad("it has too many tables");
		PRB_TRY(check_object(stmt, &ours, optional));
	}
	return ours == count_required() ? NULL : bad("tables are missing");
}

static struct prb_error *check_schema(sqlite3 *db, unsigned *optional)
{
	sqlite3_stmt *stmt = NULL;
	struct prb_error *err =
		prb_load_file_prepare(db, "SELECT type, name, sql FROM sqlite_master", &stmt);

	if (!err)
		err = check_tables(stmt, optional);
	sqlite3_finalize(stmt);
	return err;
}

/* Takes the bytes over. */
static struct prb_error *open_in_memory(unsigned char *data, size_t size, sqlite3 **ret)
{
	if (sqlite3_open_v2(":memory:", ret,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX,
			    NULL)) {
		sqlite3_free(data);
		return prb_error_nomem();
	}
	if (sqlite3_deserialize(*ret, "main", data, (sqlite3_int64)size, (sqlite3_int64)size,
				SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY))
		return failure(*ret);
	confine(*ret);
	return NULL;
}

/* The recorder was killed within a change. */
static struct prb_error *open_recovered(int fd, int journal, sqlite3 **ret)
{
	unsigned char *data;
	size_t size;

	PRB_TRY(prb_load_file_recover(fd, journal, &data, &size));
	return open_in_memory(data, size, ret);
}

static struct prb_error *open_database(struct prb_load_file *file, const char *path)
{
	prb_auto_free char *real = realpath(path, NULL);
	prb_auto_close int journal = -1;
	const char *vfs = prb_load_vfs();
	struct prb_error *err;

	if (!real)
		return prb_error_os(errno, "cannot open it");
	if (!vfs)
		return prb_error_nomem();
	if (sqlite3_open_v2(real, &file->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, vfs))
		return file->db ? failure(file->db) : prb_error_nomem();
	sqlite3_extended_result_codes(file->db, 1);
	sqlite3_busy_timeout(file->db, BUSY_MS);
	confine(file->db);
	/* From here on it has no writer. The journal may repair what is wrong. */
	err = check_schema(file->db, &file->optional);
	if (!prb_load_file_is_cut_off(file->fd, real, &journal))
		return err;
	prb_error_destroy(err);
	sqlite3_close(prb_steal(&file->db));
	PRB_TRY(open_recovered(file->fd, journal, &file->db));
	file->optional = 0;
	return check_schema(file->db, &file->optional);
}

struct prb_error *prb_load_file_open(struct prb_load_file *file, const char *path)
{
	struct prb_error *err;

	*file = (struct prb_load_file){.fd = -1};
	PRB_TRY(prb_file_open(-1, path, &file->fd));
	err = check_header(file->fd);
	if (!err)
		err = open_database(file, path);
	return prb_error_prefix(err, "%s", path);
}

struct prb_error *prb_load_file_open_copy(struct prb_load_file *file, int fd)
{
	unsigned char *data;
	struct stat st;
	size_t done = 0;

	*file = (struct prb_load_file){.fd = -1};
	PRB_TRY(check_header(fd));
	if (fstat(fd, &st) || st.st_size > MOST_COPIED)
		return bad("it is too large");
	data = sqlite3_malloc64((sqlite3_uint64)st.st_size);
	for (ssize_t got = 1; data && done < (size_t)st.st_size && got > 0; done += (size_t)got) {
		got = pread(fd, data + done, (size_t)st.st_size - done, (off_t)done);
		got = PRB_MAX(got, 0);
	}
	if (!data || done < (size_t)st.st_size) {
		sqlite3_free(data);
		return data ? bad("it cannot be read") : prb_error_nomem();
	}
	PRB_TRY(open_in_memory(data, done, &file->db));
	return check_schema(file->db, &file->optional);
}

void prb_load_file_close(struct prb_load_file *file)
{
	sqlite3_close(file->db);
	prb_close_guard(&file->fd);
	*file = (struct prb_load_file){.fd = -1};
}

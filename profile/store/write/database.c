/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of a recording: where it is made, its name, its journal, its tables. */
#include "profile/store/write/database.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/str.h"
#include "dump/text/paths.h"
#include "profile/store/schema.h"
#include "profile/store/write/statements.h"
#include "target/recorded/recorded.h"

/* SQLite follows no symbolic link here: both names become ones without links on the way. */
static struct prb_error *name_really(struct prb_new_file *file)
{
	prb_auto_free char *temporary = realpath(file->temporary, NULL), *path = NULL;
	const char *slash = temporary ? strrchr(temporary, '/') : NULL;

	if (!slash)
		return prb_error_os(errno, "cannot find %s", file->temporary);
	path = prb_format("%.*s%s", (int)(slash + 1 - temporary), temporary,
			  prb_path_last(file->path));
	if (!path)
		return prb_error_nomem();
	free(file->path);
	free(file->temporary);
	file->path = prb_steal(&path);
	file->temporary = prb_steal(&temporary);
	return NULL;
}

static struct prb_error *make_tables(struct prb_store_file *file)
{
	prb_auto_str struct prb_str sql = {};

	prb_str_printf(&sql,
		       "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
		       "PRAGMA application_id = %d; PRAGMA user_version = %d; BEGIN;",
		       PRB_RECORDED_APPLICATION, PRB_SCHEMA_FORMAT);
	for (const struct prb_schema_table *t = prb_schema_tables; t->name; t++)
		prb_str_printf(&sql, "%s;", t->sql);
	for (unsigned i = 0; i < PRB_RUN_STATES; i++)
		prb_str_printf(&sql, "INSERT INTO states VALUES (%u, '%s');", i,
			       prb_run_state_name((enum prb_run_state)i));
	prb_str_puts(&sql, "COMMIT;");
	if (sql.failed)
		return prb_error_nomem();
	return prb_store_sql_run(file, prb_str_text(&sql));
}

struct prb_error *prb_store_file_create(struct prb_store_file *file, const char *path)
{
	struct prb_error *err;

	*file = (struct prb_store_file){
		.totals_s = PRB_SCHEMA_TOTALS_S, .chunks.absorbed = -1, .file = PRB_NO_FILE};
	PRB_TRY(prb_new_file_open(&file->file, path));
	PRB_TRY(name_really(&file->file));
	file->journal = prb_format("%s-journal", file->file.path);
	if (!file->journal)
		return prb_error_nomem();
	flock(file->file.fd, LOCK_SH);
	err = prb_store_sql_open(file, file->file.temporary);
	if (!err)
		err = make_tables(file);
	prb_store_sql_close(file);
	return err;
}

/* The journal of an earlier recording must not be taken for ours. */
static struct prb_error *make_journal(const struct prb_store_file *file)
{
	struct stat st;
	int fd;

	if (!lstat(file->journal, &st)) {
		if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
			return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
							       "%s is in the way: it is no file of "
							       "this user",
							       file->journal),
					      "write to another folder, or remove it");
		if (unlink(file->journal))
			return prb_error_os(errno, "cannot remove %s", file->journal);
	}
	fd = prb_own_file_new(AT_FDCWD, file->journal, O_RDWR, 0600);
	if (fd < 0)
		return prb_error_os(errno, "cannot create %s", file->journal);
	close(fd);
	return NULL;
}

/* Two that write to files of the same name would have the same journal. */
static struct prb_error *check_other(const struct prb_store_file *file)
{
	prb_auto_close int fd = open(file->file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "%s is being written by another recording",
				file->file.path);
}

struct prb_error *prb_store_file_begin(struct prb_store_file *file)
{
	struct prb_error *err;

	PRB_TRY(check_other(file));
	PRB_TRY(make_journal(file));
	err = prb_new_file_place(&file->file);
	if (err) {
		unlink(file->journal);
		return err;
	}
	PRB_TRY(prb_store_sql_open(file, file->file.path));
	/* A journal that is truncated rather than removed leaves no name for others to take. */
	return prb_store_sql_run(file, "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = OFF;"
				       "PRAGMA temp_store = MEMORY");
}

static struct prb_error *sync_file(const char *path)
{
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 || fsync(fd) ? prb_error_os(errno, "cannot write %s", path) : NULL;
}

struct prb_error *prb_store_file_finish(struct prb_store_file *file)
{
	PRB_TRY(prb_store_sql_run(file, "PRAGMA journal_mode = DELETE"));
	prb_store_sql_close(file);
	return sync_file(file->file.path);
}

void prb_store_file_deinit(struct prb_store_file *file)
{
	prb_store_sql_close(file);
	prb_new_file_deinit(&file->file);
	prb_totals_clear(&file->totals);
	prb_steps_clear(&file->chunks.steps);
	prb_vec_free(&file->threads);
	free(file->journal);
}

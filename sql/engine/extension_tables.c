/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The source of tables that the user's extensions make (target/custom.h): `SELECT * FROM depths`.
 * The extension is asked for rows when a statement names the table. SQLite holds the rows, until
 * the next statement is prepared.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sql/engine/session_private.h"
#include "sql/engine/table_sources.h"
#include "target/custom.h"

/* SQLite reads the JSON itself: the first item names the columns, the others are rows. */
static const char columns[] = "SELECT value FROM json_each(?1, '$[0]')";
static const char rows[] = " FROM json_each(?1) WHERE key > 0";

static struct prb_error *failed(struct prb_session *session, const char *name)
{
	return prb_error_create(PRB_ERROR_FAILED, "the rows of the table %.100s: %s", name,
				sqlite3_errmsg(session->db));
}

static void finish(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}
#define AUTO_STATEMENT __attribute__((cleanup(finish))) sqlite3_stmt *

static bool start(struct prb_session *session, const char *sql, const struct prb_str *json,
		  sqlite3_stmt **ret)
{
	return !sqlite3_prepare_v2(session->db, sql, -1, ret, NULL) &&
	       (!json || !sqlite3_bind_text64(*ret, 1, json->data, json->length, SQLITE_STATIC,
					      SQLITE_UTF8));
}

/* The statements that make the table and fill it. */
static struct prb_error *write_sql(struct prb_session *session, const char *name,
				   const struct prb_str *json, struct prb_str *create,
				   struct prb_str *insert)
{
	AUTO_STATEMENT names = NULL;
	char *quoted = sqlite3_mprintf("\"%w\"", name);
	int rc = SQLITE_ERROR;

	if (quoted && start(session, columns, json, &names)) {
		prb_str_printf(create, "CREATE TEMP TABLE %s(", quoted);
		prb_str_printf(insert, "INSERT INTO temp.%s SELECT ", quoted);
		for (int i = 0; (rc = sqlite3_step(names)) == SQLITE_ROW; i++) {
			char *column = sqlite3_mprintf("%s\"%w\"", i ? ", " : "",
						       sqlite3_column_text(names, 0));

			prb_str_puts(create, column ? column : "");
			prb_str_printf(insert, "%sjson_extract(value, '$[%d]')", i ? ", " : "", i);
			sqlite3_free(column);
		}
		prb_str_puts(create, ")");
		prb_str_puts(insert, rows);
	}
	sqlite3_free(quoted);
	return rc == SQLITE_DONE ? NULL : failed(session, name);
}

static struct prb_error *run(struct prb_session *session, const char *name,
			     const struct prb_str *sql, const struct prb_str *json)
{
	AUTO_STATEMENT statement = NULL;

	if (sql->failed)
		return prb_error_nomem();
	if (start(session, prb_str_text(sql), json, &statement) &&
	    sqlite3_step(statement) == SQLITE_DONE)
		return NULL;
	return failed(session, name);
}

static struct prb_error *fill(struct prb_session *session, const char *name,
			      const struct prb_str *json)
{
	prb_auto_str struct prb_str create = {}, insert = {};

	PRB_TRY(write_sql(session, name, json, &create, &insert));
	PRB_TRY(run(session, name, &create, NULL));
	return run(session, name, &insert, json);
}

static struct prb_error *make(struct prb_session *session, const char *sql, const char *word,
			      bool *ret)
{
	const struct prb_custom *custom = session->custom;
	prb_auto_str struct prb_str json = {};
	struct prb_error *err;
	char **place;

	(void)sql;
	*ret = false;
	if (!custom)
		return NULL;
	err = custom->table(custom->context, word, &json);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	place = prb_vec_push(&session->extension_tables);
	if (!place)
		return prb_error_nomem();
	*place = strdup(word);
	if (!*place) {
		session->extension_tables.count--;
		return prb_error_nomem();
	}
	session->declaring = true;
	err = fill(session, word, &json);
	session->declaring = false;
	*ret = !err;
	return err;
}

static void deinit(struct prb_session *session)
{
	char **name;

	prb_vec_each (name, &session->extension_tables)
		free(*name);
	prb_vec_free(&session->extension_tables);
}

static void drop(struct prb_session *session)
{
	char **name;

	if (!session->extension_tables.count || sqlite3_next_stmt(session->db, NULL))
		return;
	prb_vec_each (name, &session->extension_tables) {
		char *sql = sqlite3_mprintf("DROP TABLE IF EXISTS temp.\"%w\"", *name);

		(void)prb_declare_by(session, sql);
		sqlite3_free(sql);
	}
	deinit(session);
}

const struct prb_table_source prb_extension_source = {
	.make = make,
	.drop = drop,
	.deinit = deinit,
};

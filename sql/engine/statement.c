/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sql/dialect/dialect.h"
#include "sql/engine/session_private.h"
#include "sql/engine/settings.h"
#include "sql/engine/table_sources.h"

struct prb_statement {
	struct prb_session *session;
	sqlite3_stmt *stmt; /**< NULL for SET, which has no columns and no rows */
	struct prb_plan plan;
	bool running;
	char *key, *value; /**< of SET */
};

/** The error of SQLite or of a scan. */
static struct prb_error *take_error(struct prb_session *session, const char *sql)
{
	struct prb_error *err = prb_session_check(session);

	prb_session_settle(session);
	if (!err && session->error)
		return prb_steal(&session->error);
	prb_error_destroy(session->error);
	session->error = NULL;
	return err ? err : prb_sql_error(session, sql);
}

/** Registers functions, module and guard when the first statement is prepared. */
struct prb_error *prb_session_prepared(struct prb_session *session)
{
	if (session->prepared)
		return NULL;
	PRB_TRY(prb_functions_register(session->db, &session->host));
	PRB_TRY(prb_vtab_register(session));
	prb_guard_begin(session);
	session->prepared = true;
	return NULL;
}

/** Declares the tables that @p sql names, and parses it; *rc is SQLite's code. */
static struct prb_error *parse(struct prb_session *session, const char *sql, int *rc,
			       sqlite3_stmt **ret)
{
	PRB_TRY(prb_declare_tables(session, sql));
	session->plan = (struct prb_plan){};
	*rc = sqlite3_prepare_v2(session->db, sql, -1, ret, NULL);
	return NULL;
}

/**
 * Prepares the statement. A table unknown to SQLite may be a new one of a process, or one to be
 * made for the statement.
 */
static struct prb_error *prepare(struct prb_session *session, const char *sql, int *rc,
				 sqlite3_stmt **ret)
{
	static const char unknown[] = "no such table: ";
	bool added = true;

	PRB_TRY(parse(session, sql, rc, ret));
	if (!*rc || strncmp(sqlite3_errmsg(session->db), unknown, strlen(unknown)) != 0)
		return NULL;
	PRB_TRY(prb_session_look_for_tables(session));
	/* parse() has declared all tables that existed before. */
	if (prb_session_table(session, session->declared.count))
		PRB_TRY(parse(session, sql, rc, ret));
	while (added && *rc && !strncmp(sqlite3_errmsg(session->db), unknown, strlen(unknown))) {
		prb_auto_free char *word = strdup(sqlite3_errmsg(session->db) + strlen(unknown));

		if (!word)
			return prb_error_nomem();
		PRB_TRY(prb_session_make_table(session, sql, word, &added));
		if (added)
			PRB_TRY(parse(session, sql, rc, ret));
	}
	return NULL;
}

/** Warns that SQLite's own catalog lacks tables. */
static void warn_of_catalog(struct prb_session *session, const char *sql)
{
	if (!strncasecmp(sql, "pragma", strlen("pragma")) || strcasestr(sql, "sqlite_master") ||
	    strcasestr(sql, "sqlite_schema"))
		prb_session_warn(session, "SQLite itself knows few of the tables: SHOW TABLES, "
					  "DESCRIBE TABLE and information_schema have all");
}

/** VACUUM and the like pass the guard: SQLite calls the authorizer for them only when they run, and
 * for REINDEX only where there are indexes. */
static struct prb_error *check(const char *sql, sqlite3_stmt *stmt)
{
	bool writes = !strncasecmp(sql, "reindex", strlen("reindex"));

	return stmt && (writes || !sqlite3_stmt_readonly(stmt)) ? prb_sql_error_writes() : NULL;
}

static bool is_syntax_error(const struct prb_session *session)
{
	return strstr(sqlite3_errmsg(session->db), "syntax error");
}

/** Tries the user's own text first; if SQLite refuses it, its translation. */
static struct prb_error *prepare_sql(struct prb_session *session, const char *script, size_t length,
				     struct prb_dialect_statement *d, sqlite3_stmt **ret)
{
	prb_auto_free char *own = strndup(script + d->start, d->end - d->start);
	struct prb_error *err;
	int rc;

	if (!own)
		return prb_error_nomem();
	PRB_TRY(prepare(session, own, &rc, ret));
	if (!rc)
		warn_of_catalog(session, own);
	if (!rc)
		return check(own, *ret);
	if (d->refusal) {
		prb_error_destroy(session->error);
		session->error = NULL;
		return prb_script_error(prb_steal(&d->refusal), script, length, d->refused_at);
	}
	bool understood = !is_syntax_error(session), translated = d->translation;
	if (translated)
		PRB_TRY(prepare(session, d->translation, &rc, ret));
	if (!rc)
		return check(own, *ret);
	/* If only the translation has a syntax error, report the error of the user's text. */
	if (translated && understood && is_syntax_error(session)) {
		translated = false;
		PRB_TRY(prepare(session, own, &rc, ret));
	}
	int offset = sqlite3_error_offset(session->db);
	err = take_error(session, own);
	if (offset < 0)
		return err;
	return prb_script_error(err, script, length,
				translated ? prb_dialect_locate(d, (size_t)offset)
					   : d->start + (size_t)offset);
}

struct prb_error *prb_session_prepare(struct prb_session *session, const char *script,
				      size_t length, size_t *at, struct prb_statement **ret)
{
	__attribute__((cleanup(prb_dialect_statement_deinit))) struct prb_dialect_statement d = {};
	struct prb_statement *s;

	*ret = NULL;
	PRB_TRY(prb_session_prepared(session));
	prb_session_drop_tables(session);
	PRB_TRY(prb_dialect_next(script, length, *at, &d));
	*at = d.next;
	if (d.kind == PRB_STATEMENT_NONE)
		return NULL;
	if (d.end - d.start > (size_t)sqlite3_limit(session->db, SQLITE_LIMIT_SQL_LENGTH, -1))
		return prb_error_create(PRB_ERROR_USAGE, "the statement is longer than a megabyte");
	s = calloc(1, sizeof(*s));
	if (!s)
		return prb_error_nomem();
	s->session = session;
	struct prb_error *err = NULL;
	if (d.kind == PRB_STATEMENT_SQL)
		err = prepare_sql(session, script, length, &d, &s->stmt);
	s->plan = session->plan;
	s->key = prb_steal(&d.key);
	s->value = prb_steal(&d.value);
	if (err)
		prb_statement_destroy(s);
	else
		*ret = s;
	return err;
}

/** Before the first row: ends the instants of an earlier run, starts the clock. */
static void begin(struct prb_statement *statement)
{
	struct prb_session *session = statement->session;

	prb_session_end_instants(session);
	prb_session_begin(session);
	session->plan = statement->plan;
	statement->running = true;
}

struct prb_error *prb_statement_next(struct prb_statement *statement, bool *row)
{
	struct prb_session *session = statement->session;

	*row = false;
	if (!statement->stmt)
		return prb_settings_set(session, statement->key, statement->value, false);
	if (!statement->running)
		begin(statement);
	int rc = sqlite3_step(statement->stmt);
	*row = rc == SQLITE_ROW;
	if (*row)
		return NULL;
	struct prb_error *err =
		rc == SQLITE_DONE ? NULL : take_error(session, sqlite3_sql(statement->stmt));
	prb_statement_reset(statement);
	return err;
}

void prb_statement_reset(struct prb_statement *statement)
{
	sqlite3_reset(statement->stmt);
	statement->running = false;
	statement->session->deadline = 0;
	prb_session_end_instants(statement->session);
}

void prb_statement_destroy(struct prb_statement *statement)
{
	if (!statement)
		return;
	sqlite3_finalize(statement->stmt);
	prb_session_end_instants(statement->session);
	free(statement->key);
	free(statement->value);
	free(statement);
}

unsigned prb_statement_columns(const struct prb_statement *statement)
{
	return (unsigned)sqlite3_column_count(statement->stmt);
}

const char *prb_statement_name(const struct prb_statement *statement, unsigned column)
{
	const char *name = sqlite3_column_name(statement->stmt, (int)column);

	return name ? name : "";
}

const struct prb_column *prb_statement_origin(const struct prb_statement *statement,
					      unsigned column)
{
	const char *schema = sqlite3_column_database_name(statement->stmt, (int)column);
	const char *name = sqlite3_column_table_name(statement->stmt, (int)column);
	const char *origin = sqlite3_column_origin_name(statement->stmt, (int)column);
	const struct prb_table *table =
		schema && name ? prb_session_find_listed(statement->session, schema, name) : NULL;

	if (!table || !origin)
		return NULL;
	for (const struct prb_column *c = table->columns; c->name; c++)
		if (!strcmp(c->name, origin))
			return c;
	return NULL;
}

int64_t prb_statement_integer(struct prb_statement *statement, unsigned column)
{
	return sqlite3_column_int64(statement->stmt, (int)column);
}

double prb_statement_real(struct prb_statement *statement, unsigned column)
{
	return sqlite3_column_double(statement->stmt, (int)column);
}

const char *prb_statement_text(struct prb_statement *statement, unsigned column, size_t *length)
{
	const char *text = (const char *)sqlite3_column_text(statement->stmt, (int)column);

	if (length)
		*length = text ? (size_t)sqlite3_column_bytes(statement->stmt, (int)column) : 0;
	return text;
}

void prb_statement_value(struct prb_statement *statement, unsigned column, struct prb_value *ret)
{
	sqlite3_stmt *stmt = statement->stmt;
	int i = (int)column;

	*ret = (struct prb_value){};
	switch (sqlite3_column_type(stmt, i)) {
	case SQLITE_INTEGER:
		ret->kind = PRB_VALUE_INTEGER;
		ret->integer = sqlite3_column_int64(stmt, i);
		break;
	case SQLITE_FLOAT:
		ret->kind = PRB_VALUE_REAL;
		ret->real = sqlite3_column_double(stmt, i);
		break;
	case SQLITE_TEXT:
		ret->kind = PRB_VALUE_TEXT;
		ret->text = (const char *)sqlite3_column_text(stmt, i);
		ret->length = (size_t)sqlite3_column_bytes(stmt, i);
		break;
	case SQLITE_BLOB:
		ret->kind = PRB_VALUE_BLOB;
		ret->text = sqlite3_column_blob(stmt, i);
		ret->length = (size_t)sqlite3_column_bytes(stmt, i);
		break;
	default:
		break;
	}
	if (!ret->text)
		ret->length = 0;
}

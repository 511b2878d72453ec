/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "dwarf/base/cleanup.h"
#include "sql/session_private.h"

struct prb_statement {
	struct prb_session *session;
	sqlite3_stmt *stmt;
	struct prb_plan plan;
	bool running;
};

/** What SQLite or a scan complains of. */
static struct prb_error *take_error(struct prb_session *session)
{
	struct prb_error *err = prb_session_check(session);

	if (!err && session->error)
		return prb_steal(&session->error);
	prb_error_destroy(session->error);
	session->error = NULL;
	return err ? err : prb_complaint(session);
}

struct prb_error *prb_session_prepare(struct prb_session *session, const char *sql, size_t length,
				      size_t *consumed, struct prb_statement **ret)
{
	const char *tail = NULL;
	struct prb_statement *s;

	*ret = NULL;
	if (length > INT32_MAX)
		return prb_error_create(PRB_ERROR_USAGE, "the query is too long");
	if (!session->declared) {
		PRB_TRY(prb_vtab_register(session));
		prb_guard_begin(session);
		session->declared = true;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return prb_error_nomem();
	s->session = session;
	session->plan = (struct prb_plan){};
	if (sqlite3_prepare_v2(session->db, sql, (int)length, &s->stmt, &tail)) {
		free(s);
		return take_error(session);
	}
	*consumed = (size_t)(tail - sql);
	if (!s->stmt) {
		free(s);
		return NULL;
	}
	s->plan = session->plan;
	*ret = s;
	return NULL;
}

struct prb_error *prb_statement_next(struct prb_statement *statement, bool *row)
{
	struct prb_session *session = statement->session;

	if (!statement->running) {
		prb_session_end_instants(session);
		prb_session_begin(session);
		session->plan = statement->plan;
		statement->running = true;
	}
	int rc = sqlite3_step(statement->stmt);
	*row = rc == SQLITE_ROW;
	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		return NULL;
	struct prb_error *err = take_error(session);
	prb_statement_reset(statement);
	return err;
}

void prb_statement_reset(struct prb_statement *statement)
{
	sqlite3_reset(statement->stmt);
	statement->running = false;
	prb_session_end_instants(statement->session);
}

void prb_statement_destroy(struct prb_statement *statement)
{
	if (!statement)
		return;
	sqlite3_finalize(statement->stmt);
	prb_session_end_instants(statement->session);
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
	const struct prb_table *table = schema && name ? prb_table_find(schema, name) : NULL;

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

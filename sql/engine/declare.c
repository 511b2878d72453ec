/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Tables are declared to SQLite when a statement first names them: declaring all of them takes
 * longer than most queries.
 */
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "sql/engine/session_private.h"
#include "sql/engine/table_sources.h"

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

bool prb_sql_mentions(const char *sql, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = strcasestr(sql, name); at; at = strcasestr(at + 1, name))
		if ((at == sql || !is_name_byte(at[-1])) && !is_name_byte(at[length]))
			return true;
	return false;
}

/** SQLite's own limit, which distributions do not raise. */
enum { MOST_ATTACHED = 10 };

/** Statements that list tables by SQLite's own means need all of them, as far as there is room. */
static bool asks_for_all(const char *sql)
{
	return strcasestr(sql, "sqlite_") || strcasestr(sql, "pragma");
}

/** The bit of a schema in `attached`; 0 for main, which is always there. */
static uint32_t bit_of(const char *schema)
{
	size_t index = 0;

	if (!strcmp(schema, "main"))
		return 0;
	/* The bit after prb_schemas is for the schema "user", which only rings have. */
	while (prb_schemas[index].name && strcmp(prb_schemas[index].name, schema) != 0)
		index++;
	return 1u << (index + !strcmp(schema, "global"));
}

static void attach(struct prb_session *session, const char *schema, struct prb_str *ret)
{
	uint32_t bit = bit_of(schema);

	if (bit & ~session->attached)
		prb_str_printf(ret, "ATTACH ':memory:' AS %s;", schema);
	session->attached |= bit;
}

/** Whether a statement that lists tables gets one of this schema. The catalog's warning tells that
 * some are left out (statement.c). */
static bool has_room(const struct prb_session *session, const char *sql, const char *schema)
{
	uint32_t attached = session->attached;

	for (size_t i = 0; prb_schemas[i].name; i++)
		if (prb_sql_mentions(sql, prb_schemas[i].name))
			attached |= bit_of(prb_schemas[i].name);
	return !(bit_of(schema) & ~attached) || __builtin_popcount(attached) < MOST_ATTACHED;
}

static void create(struct prb_session *session, const struct prb_table *table,
		   struct prb_str *attached, struct prb_str *created)
{
	attach(session, table->schema, attached);
	prb_str_printf(created, "CREATE VIRTUAL TABLE %s.%s USING prb;", table->schema,
		       table->name);
}

int prb_declare_by(struct prb_session *session, const char *sql)
{
	if (!sql)
		return SQLITE_NOMEM;
	session->declaring = true;
	int rc = sqlite3_exec(session->db, sql, NULL, NULL, NULL);
	session->declaring = false;
	return rc;
}

int prb_declare_virtual(struct prb_session *session, const char *schema, const char *name)
{
	char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE %s.\"%w\" USING prb", schema, name);
	int rc = prb_declare_by(session, sql);

	sqlite3_free(sql);
	return rc;
}

static struct prb_error *run(struct prb_session *session, const struct prb_str *sql)
{
	if (sql->failed)
		return prb_error_nomem();
	if (prb_declare_by(session, prb_str_text(sql)))
		return prb_error_create(PRB_ERROR_FAILED, "declaring tables: %s",
					sqlite3_errmsg(session->db));
	return NULL;
}

struct prb_error *prb_declare_schema(struct prb_session *session, const char *schema)
{
	prb_auto_str struct prb_str attached = {};

	attach(session, schema, &attached);
	return run(session, &attached);
}

struct prb_error *prb_declare_tables(struct prb_session *session, const char *sql)
{
	prb_auto_str struct prb_str attached = {}, created = {};
	bool all = asks_for_all(sql);
	const struct prb_table *table;

	for (size_t i = 0; (table = prb_session_table(session, i)); i++) {
		if (i == session->declared.count && !prb_vec_push(&session->declared))
			return prb_error_nomem();
		if (session->declared.items[i])
			continue;
		if (all ? !has_room(session, sql, table->schema)
			: !prb_sql_mentions(sql, table->name))
			continue;
		session->declared.items[i] = true;
		create(session, table, &attached, &created);
	}
	if (!created.length)
		return NULL;
	prb_str_append(&attached, created.data, created.length);
	return run(session, &attached);
}

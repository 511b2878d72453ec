/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SHOW and DESCRIBE, as queries of information_schema. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/dialect/dialect_private.h"

/** A name of up to several parts: the last is `name`, those before `schema`. */
struct qualified {
	struct prb_str schema, name;
	bool has_schema;
};

static void qualified_deinit(struct qualified *q)
{
	prb_str_deinit(&q->schema);
	prb_str_deinit(&q->name);
}

/** Reads a name at token @p i; gives its tokens, 0 if there is none. */
static size_t read_name(const struct prb_translation *t, size_t i, struct qualified *q)
{
	size_t start = i;

	while (prb_translation_is_name(t, i)) {
		prb_translation_value(t, i, &q->name);
		if (!prb_translation_is(t, i + 1, ".") || !prb_translation_is_name(t, i + 2))
			return i + 1 - start;
		if (q->has_schema)
			prb_str_putc(&q->schema, '.');
		prb_str_puts(&q->schema, prb_str_text(&q->name));
		prb_str_truncate(&q->name, 0);
		q->has_schema = true;
		i += 2;
	}
	return 0;
}

static bool is_from(const struct prb_translation *t, size_t i)
{
	return prb_translation_is(t, i, "from") || prb_translation_is(t, i, "in");
}

/** [LIKE 'pattern'] and the end of the statement; *pattern is its token or PRB_NO_TOKEN. */
static bool read_like(const struct prb_translation *t, size_t i, size_t *pattern)
{
	*pattern = PRB_NO_TOKEN;
	if ((prb_translation_is(t, i, "like") || prb_translation_is(t, i, "ilike")) &&
	    i + 1 < t->tokens.count && t->tokens.items[i + 1].kind == PRB_TOKEN_STRING) {
		*pattern = i + 1;
		i += 2;
	}
	return i == t->tokens.count;
}

static void put_like(struct prb_translation *t, size_t pattern, const char *column)
{
	if (pattern == PRB_NO_TOKEN)
		return;
	prb_translation_put(t, pattern, column);
	prb_translation_put(t, pattern, " LIKE ");
	prb_translation_write(t, pattern, pattern + 1);
}

/** " WHERE " or " AND ", then: column = 'text', whatever the case of letters. */
static void put_equal(struct prb_translation *t, size_t i, const char *column, const char *text)
{
	prb_translation_put(t, i, column);
	prb_translation_put(t, i, " = ");
	prb_translation_put_string(t, i, text);
	prb_translation_put(t, i, " COLLATE NOCASE");
}

/** SHOW TABLES [FROM schema] [LIKE 'x'] */
static bool show_tables(struct prb_translation *t)
{
	__attribute__((cleanup(qualified_deinit))) struct qualified schema = {};
	size_t at = 2, pattern;

	if (is_from(t, at)) {
		size_t length = read_name(t, at + 1, &schema);

		if (!length || schema.has_schema)
			return false;
		at += 1 + length;
	}
	if (!read_like(t, at, &pattern))
		return false;
	prb_translation_put(t, 0,
			    "SELECT table_schema, table_name, table_type, comment "
			    "FROM information_schema.tables");
	if (at > 2)
		put_equal(t, 3, " WHERE table_schema", prb_str_text(&schema.name));
	put_like(t, pattern, at > 2 ? " AND table_name" : " WHERE table_name");
	prb_translation_put(t, 1, " ORDER BY table_schema, table_name");
	return true;
}

static void put_which(struct prb_translation *t, size_t i, const struct qualified *table)
{
	put_equal(t, i, " WHERE table_name", prb_str_text(&table->name));
	if (table->has_schema)
		put_equal(t, i, " AND table_schema", prb_str_text(&table->schema));
}

/** The columns of one table; a table that does not exist is an error of the query. */
static void put_columns(struct prb_translation *t, size_t i, const struct qualified *table,
			size_t pattern)
{
	prb_auto_str struct prb_str missing = {};

	prb_str_printf(&missing, "no such table: %s%s%s", prb_str_text(&table->schema),
		       table->has_schema ? "." : "", prb_str_text(&table->name));
	t->no_memory |= missing.failed;
	prb_translation_put(t, i, "SELECT ");
	if (!table->has_schema)
		prb_translation_put(t, i, "table_schema, ");
	prb_translation_put(t, i,
			    "column_name, data_type, unit, is_hidden, column_comment FROM "
			    "(SELECT coalesce(max(table_name), error(");
	prb_translation_put_string(t, i, prb_str_text(&missing));
	prb_translation_put(t, i, ")) FROM information_schema.tables");
	put_which(t, i, table);
	prb_translation_put(t, i, ") CROSS JOIN information_schema.columns");
	put_which(t, i, table);
	put_like(t, pattern, " AND column_name");
	prb_translation_put(t, i, " ORDER BY table_schema, ordinal_position");
}

/** SHOW COLUMNS FROM t [FROM schema] [LIKE 'x'], with its table at token @p i; DESCRIBE t */
static bool show_columns(struct prb_translation *t, size_t i, bool describe)
{
	__attribute__((cleanup(qualified_deinit))) struct qualified table = {}, schema = {};
	size_t length = read_name(t, i, &table), at = i + length, pattern = PRB_NO_TOKEN;

	if (!length)
		return false;
	if (!describe && is_from(t, at) && !table.has_schema) {
		length = read_name(t, at + 1, &schema);
		if (!length || schema.has_schema)
			return false;
		prb_str_puts(&table.schema, prb_str_text(&schema.name));
		table.has_schema = true;
		at += 1 + length;
	}
	if (describe ? at != t->tokens.count : !read_like(t, at, &pattern))
		return false;
	t->no_memory |= table.name.failed || table.schema.failed;
	put_columns(t, i, &table, pattern);
	return true;
}

static bool show_schemas(struct prb_translation *t)
{
	size_t pattern;

	if (!read_like(t, 2, &pattern))
		return false;
	prb_translation_put(t, 0, "SELECT schema_name, comment FROM information_schema.schemata");
	put_like(t, pattern, " WHERE schema_name");
	prb_translation_put(t, 1, " ORDER BY schema_name");
	return true;
}

/** SHOW ALL [LIKE 'x'], SHOW key */
static bool show_settings(struct prb_translation *t)
{
	__attribute__((cleanup(qualified_deinit))) struct qualified key = {};
	prb_auto_str struct prb_str name = {}, missing = {};
	size_t pattern;

	if (prb_translation_is(t, 1, "all") && read_like(t, 2, &pattern)) {
		prb_translation_put(t, 0,
				    "SELECT name, value, description FROM "
				    "information_schema.df_settings");
		put_like(t, pattern, " WHERE name");
		prb_translation_put(t, 1, " ORDER BY name");
		return true;
	}
	if (1 + read_name(t, 1, &key) != t->tokens.count || t->tokens.count < 2)
		return false;
	prb_str_printf(&name, "%s%s%s", prb_str_text(&key.schema), key.has_schema ? "." : "",
		       prb_str_text(&key.name));
	prb_str_printf(&missing, "there is no setting '%s'; SHOW ALL lists them",
		       prb_str_text(&name));
	t->no_memory |= name.failed || missing.failed;
	prb_translation_put(t, 0, "SELECT coalesce(max(name), error(");
	prb_translation_put_string(t, 1, prb_str_text(&missing));
	prb_translation_put(t, 1,
			    ")) AS name, value, description FROM "
			    "information_schema.df_settings");
	put_equal(t, 1, " WHERE name", prb_str_text(&name));
	return true;
}

static bool show(struct prb_translation *t)
{
	if (prb_translation_is(t, 1, "tables"))
		return show_tables(t);
	if (prb_translation_is(t, 1, "schemas") || prb_translation_is(t, 1, "databases"))
		return show_schemas(t);
	if (prb_translation_is(t, 1, "columns"))
		return is_from(t, 2) && show_columns(t, 3, false);
	return show_settings(t);
}

bool prb_translate_show(struct prb_translation *t)
{
	if (prb_translation_is(t, 0, "show")) {
		if (!show(t))
			prb_translation_refuse(
				t, 0,
				prb_error_hint(
					prb_error_create(PRB_ERROR_USAGE, "SHOW what?"),
					"SHOW TABLES [FROM schema] [LIKE 'x%%'], SHOW COLUMNS "
					"FROM table, SHOW SCHEMAS, SHOW ALL, SHOW key"));
		return true;
	}
	if (prb_translation_is(t, 0, "describe") || prb_translation_is(t, 0, "desc")) {
		if (!show_columns(t, 1, true))
			prb_translation_refuse(
				t, 0,
				prb_error_hint(
					prb_error_create(PRB_ERROR_USAGE,
							 "DESCRIBE takes the name of a table"),
					"for example DESCRIBE python.backtrace"));
		return true;
	}
	return false;
}

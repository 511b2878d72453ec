/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns SQLite's errors into helpful ones. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/words.h"
#include "sql/engine/session_private.h"
#include "sql/spec/collected.h"

enum { MAX_NEAR = 5 };

/** Collects names that resemble the unknown one, each once. */
struct near {
	const char *word;
	const char *names[MAX_NEAR];
	const char *schemas[MAX_NEAR]; /**< of tables; NULL for columns */
	unsigned count;
};

static void consider(struct near *near, const char *schema, const char *name)
{
	if (near->count == MAX_NEAR || !prb_word_resembles(near->word, name))
		return;
	for (unsigned i = 0; i < near->count; i++)
		if (!schema && !strcmp(near->names[i], name))
			return;
	near->schemas[near->count] = schema;
	near->names[near->count++] = name;
}

static struct prb_error *hint(struct prb_error *err, const struct near *near, const char *otherwise)
{
	prb_auto_str struct prb_str text = {};

	for (unsigned i = 0; i < near->count; i++) {
		prb_str_puts(&text, i ? " or " : "");
		if (near->schemas[i])
			prb_str_printf(&text, "%s.", near->schemas[i]);
		prb_str_puts(&text, near->names[i]);
	}
	if (near->count)
		return prb_error_hint(err, "did you mean %s?", prb_str_text(&text));
	return prb_error_hint(err, "%s", otherwise);
}

static struct prb_error *unknown_table(struct prb_error *err, const char *word)
{
	const char *dot = strrchr(word, '.');
	struct near near = {.word = dot ? dot + 1 : word};
	const struct prb_collected *collected = prb_collected_find_qualified(word);

	if (collected) {
		prb_error_destroy(err);
		err = prb_error_create(PRB_ERROR_USAGE, "no such table: nothing records %s here",
				       word);
		return prb_error_hint(err, "%s", collected->start);
	}
	for (const struct prb_table *const *t = prb_tables; *t; t++)
		consider(&near, (*t)->schema, (*t)->name);
	return hint(err, &near, "'probing tables' lists them");
}

/** True if @p sql names the table; with its schema, if @p qualified. */
static bool is_about(const char *sql, const struct prb_table *table, bool qualified)
{
	char name[128];

	snprintf(name, sizeof(name), "%s.%s", table->schema, table->name);
	return prb_sql_mentions(sql, qualified ? name : table->name);
}

/** Considers the columns of the tables that @p sql names, and lists all of them. */
static void consider_columns(struct near *near, const char *sql, bool qualified,
			     struct prb_str *list)
{
	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		if (!is_about(sql, *t, qualified))
			continue;
		prb_str_printf(list, "%s%s.%s has", list->length ? "; " : "", (*t)->schema,
			       (*t)->name);
		for (const struct prb_column *c = (*t)->columns; c->name; c++) {
			consider(near, NULL, c->name);
			prb_str_printf(list, "%s %s", c == (*t)->columns ? "" : ",", c->name);
		}
	}
}

static struct prb_error *unknown_column(struct prb_error *err, const char *word, const char *sql)
{
	const char *dot = strrchr(word, '.');
	struct near near = {.word = dot ? dot + 1 : word};
	prb_auto_str struct prb_str list = {};

	consider_columns(&near, sql, true, &list);
	if (!list.length)
		consider_columns(&near, sql, false, &list);
	if (!list.length)
		prb_str_puts(&list, "text is written in single quotes");
	return hint(err, &near, prb_str_text(&list));
}

struct prb_error *prb_sql_error_writes(void)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE,
				 "a query can only read, and this does something else"),
		"there are SELECT, WITH, VALUES, EXPLAIN, SHOW, DESCRIBE and SET; "
		"information_schema lists tables and columns");
}

/** The text after @p prefix, or NULL if @p message does not begin with it. */
static const char *after(const char *message, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(message, prefix, length) ? NULL : message + length;
}

/** A hint for functions of other databases. */
static const char *elsewhere(const char *message, const char *sql)
{
	static const struct {
		const char *message, *word, *hint;
	} known[] = {
		{"no such function: percentile", "", "percentile_cont(column, 0.9)"},
		{"no such function: quantile", "", "percentile_cont(column, 0.9)"},
		{"no such function: approx_percentile", "", "approx_quantile(column, 0.9)"},
		{"no such function: approx_distinct", "", "approx_count_distinct(column)"},
		{"no such function: uniq", "", "approx_count_distinct(column)"},
		{"no such function: string_agg", "", "group_concat(column, ', ')"},
		{"no such function: listagg", "", "group_concat(column, ', ')"},
		{"no such function: array_agg", "", "json_group_array(column)"},
		{"no such function: rollup", "",
		 "GROUP BY a, b UNION ALL a second SELECT for the sums"},
		{"near \"on\"", "distinct on",
		 "GROUP BY the column, with min() or max() of the others"},
		{"near \"", "select top ", "LIMIT 5 at the end"},
		{"near \".\"", "global.",
		 "it after 'probing cluster query': global tables are of all ranks of a job"},
		{"unrecognized token: \"\\\"", "\\d",
		 "SHOW TABLES; DESCRIBE TABLE has its columns"},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(known); i++) {
		const char *end = strncasecmp(message, known[i].message, strlen(known[i].message))
					  ? NULL
					  : message + strlen(known[i].message);

		/* An empty `word`: the message must end there, after the function's whole name. */
		if (end && (*known[i].word ? strcasestr(sql, known[i].word) != NULL : !*end))
			return known[i].hint;
	}
	return NULL;
}

struct prb_error *prb_sql_error(struct prb_session *session, const char *sql)
{
	const char *message = sqlite3_errmsg(session->db), *word;
	int code = sqlite3_errcode(session->db);
	struct prb_error *err;

	if ((code & 0xff) == SQLITE_NOMEM)
		return prb_error_nomem();
	err = prb_error_create((code & 0xff) == SQLITE_ERROR || (code & 0xff) == SQLITE_AUTH
				       ? PRB_ERROR_USAGE
				       : PRB_ERROR_FAILED,
			       "%s", message);
	if ((word = after(message, "no such table: ")))
		return unknown_table(err, word);
	if ((word = after(message, "no such column: ")))
		return unknown_column(err, word, sql);
	if ((word = elsewhere(message, sql)))
		return prb_error_hint(err, "write %s", word);
	if (!strcmp(message, "no query solution"))
		return prb_error_hint(err, "python.backtrace has to be told which thread is meant "
					   "by a table before it: use python.stacks instead");
	if ((code & 0xff) == SQLITE_AUTH || !strcmp(message, "not authorized")) {
		prb_error_destroy(err);
		return prb_sql_error_writes();
	}
	return err;
}

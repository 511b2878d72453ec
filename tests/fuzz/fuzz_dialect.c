/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as a script of SQL: its tokens, statements, their translations, the places of errors;
 * and as an interval and a time. SQLite itself decides what needs no translation.
 */
#include <sqlite3.h>

#include "base/str.h"
#include "sql/dialect/dialect.h"
#include "sql/dialect/partial.h"
#include "sql/functions/functions.h"
#include "sql/functions/functions_time.h"
#include "sql/dialect/tokens.h"
#include "tests/fuzz/input.h"

/** Allows only reads: preparing a statement must change nothing. */
static int allow(void *data, int action, const char *a, const char *b, const char *c, const char *d)
{
	(void)data, (void)a, (void)b, (void)c, (void)d;
	return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ||
			       action == SQLITE_RECURSIVE
		       ? SQLITE_OK
		       : SQLITE_DENY;
}

static sqlite3 *database(void)
{
	static struct prb_functions_host host = {.now = 1767323045};
	static sqlite3 *db;

	if (!db) {
		if (sqlite3_open(":memory:", &db) || prb_functions_register(db, &host))
			abort();
		sqlite3_set_authorizer(db, allow, NULL);
	}
	return db;
}

static bool has_word(const char *text, size_t start, size_t end, const char *const *words)
{
	while (start < end) {
		struct prb_token token = prb_token_at(text, end, start);

		for (size_t i = 0; words[i]; i++)
			if (prb_token_is(text, &token, words[i]))
				return true;
		start = token.end;
	}
	return false;
}

/* All words that are ever translated, and those that SQLite may take for an alias. */
static const char *const words[] = {
	"interval", "timestamp", "timestamptz", "date", "extract", "percentile_cont",
	"fetch",    "ilike",	 "limit",	"show", "desc",	   "percentile_disc",
	"describe", "set",	 "~",		"~*",	"!~",	   "!~*",
	"::",	    NULL,
};
static const char *const ambiguous[] = {"interval", "timestamp", "timestamptz", "date", NULL};

/** Statements that SQLite accepts are not translated, and both agree on their end. */
static void check_plain(const char *script, const struct prb_dialect_statement *statement)
{
	sqlite3_stmt *stmt = NULL;
	const char *tail;

	if (sqlite3_prepare_v2(database(), script + statement->start, -1, &stmt, &tail) ==
	    SQLITE_OK) {
		size_t end = tail - script;

		if (end < statement->end || end > statement->next)
			abort();
		if ((statement->translation || statement->refusal ||
		     statement->kind == PRB_STATEMENT_SET) &&
		    !has_word(script, statement->start, statement->end, ambiguous))
			abort();
	}
	sqlite3_finalize(stmt);
}

static void check_translation(const struct prb_dialect_statement *statement)
{
	const char *text = statement->translation;
	size_t length = strlen(text);
	sqlite3_stmt *stmt = NULL;

	/* One statement must remain one. */
	for (size_t at = 0; at < length;) {
		struct prb_token token = prb_token_at(text, length, at);

		if (token.kind == PRB_TOKEN_SEMICOLON)
			abort();
		at = token.end;
	}
	for (size_t at = 0; at <= length + 1; at++) {
		size_t own = prb_dialect_locate(statement, at);

		if (own < statement->start || own > statement->end)
			abort();
	}
	(void)sqlite3_prepare_v2(database(), text, -1, &stmt, NULL);
	sqlite3_finalize(stmt);
}

static void check_statement(const char *script, size_t length,
			    struct prb_dialect_statement *statement)
{
	struct prb_error *err;

	if (statement->start >= statement->end || statement->end > statement->next ||
	    statement->next > length)
		abort();
	if (!has_word(script, statement->start, statement->end, words) &&
	    (statement->translation || statement->refusal))
		abort();
	if (statement->translation)
		check_translation(statement);
	if (statement->refusal) {
		if (statement->translation || statement->refused_at < statement->start ||
		    statement->refused_at > statement->end)
			abort();
		err = prb_script_error(statement->refusal, script, length, statement->refused_at);
		statement->refusal = NULL;
		prb_error_destroy(err);
	}
	prb_script_position(script, length, statement->end);
}

static void check_tokens(const char *script, size_t length)
{
	for (size_t at = 0; at < length;) {
		struct prb_token token = prb_token_at(script, length, at);

		if (token.start != at || token.end <= at || token.end > length)
			abort();
		at = token.end;
	}
}

static void check_script(const char *script, size_t length)
{
	struct prb_dialect_statement statement;
	struct prb_error *err;
	size_t at = 0;

	do {
		err = prb_dialect_next(script, length, at, &statement);
		if (err) {
			prb_error_destroy(err);
			return;
		}
		if (statement.next <= at && at < length)
			abort();
		at = statement.next;
		if (statement.kind != PRB_STATEMENT_NONE) {
			check_plain(script, &statement);
			check_statement(script, length, &statement);
		}
		prb_dialect_statement_deinit(&statement);
	} while (at < length);
}

static bool has_column(const void *context, const char *schema, const char *table,
		       const char *column, size_t length)
{
	(void)context, (void)schema, (void)table;
	return length && column[0] == 'd';
}

/** Both parts of a split statement are valid, and the condition is the user's own text. */
static void check_partial(const char *script)
{
	prb_auto_partial struct prb_partial partial;
	struct prb_error *err = prb_partial_make(
		script, &(struct prb_partial_table){.name = "x", .has_column = has_column},
		&partial);

	if (err || !partial.each != !partial.rest || (partial.each && !partial.table) ||
	    (partial.where && !strstr(script, partial.where)))
		abort();
	if (partial.each) {
		check_tokens(partial.each, strlen(partial.each));
		if (strncmp(partial.rest, "SELECT ", 7) != 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	prb_auto_free char *script = malloc(size + 1);
	prb_auto_str struct prb_str picture = {};
	double seconds;

	if (!script)
		abort();
	if (size)
		memcpy(script, data, size);
	script[size] = '\0';
	check_tokens(script, size);
	check_script(script, size);
	check_partial(script);
	for (size_t at = 0; at <= size; at += size / 8 + 1)
		prb_script_point(&picture, script, size, at);
	prb_error_destroy(prb_interval_parse(script, size, &seconds));
	if (prb_timestamp_parse(script, size, &seconds))
		prb_timestamp_text(&picture, seconds);
	return 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/global_tables.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/dialect/partial.h"
#include "sql/engine/session_private.h"
#include "sql/engine/table_sources.h"

enum { MAX_TABLES = 16, MAX_COLUMNS = 100 };

struct prb_global_table {
	struct prb_table spec;
	struct prb_global_ask ask;
	struct prb_partial partial; /**< the ranks' part of the statement; owns texts of `ask` */
	struct prb_table rest;	    /**< the `own` table if the rows are those of `ask.sql` */
	char *name;		    /**< "python.threads" */
	struct prb_column columns[MAX_COLUMNS + PRB_PLACE_COUNT + 1];
};

static const struct prb_column places[PRB_PLACE_COUNT] = {
	[PRB_PLACE_HOST] = {"_host", PRB_COLUMN_TEXT, "Host of the rank"},
	[PRB_PLACE_ADDRESS] = {"_addr", PRB_COLUMN_TEXT, "Target that names its process"},
	/* Each host knows its ranks and pids. */
	[PRB_PLACE_RANK] = {"_rank", PRB_COLUMN_INTEGER, "Rank in the job",
			    .flags = PRB_COLUMN_KEY | PRB_COLUMN_RANGE},
	[PRB_PLACE_LOCAL_RANK] = {"_local_rank", PRB_COLUMN_INTEGER, "Rank on its host"},
	[PRB_PLACE_NODE_RANK] = {"_node_rank", PRB_COLUMN_INTEGER, "Number of its host in the job"},
	[PRB_PLACE_ROLE] = {"_role", PRB_COLUMN_TEXT, "What its environment calls its role"},
	[PRB_PLACE_PID] = {"_pid", PRB_COLUMN_INTEGER, "Its process",
			   .flags = PRB_COLUMN_KEY | PRB_COLUMN_RANGE},
};

static struct prb_error *scan_global(struct prb_scan *scan)
{
	const struct prb_global_table *table = (const struct prb_global_table *)scan->table;
	const struct prb_session *session = scan->session;

	if (!session->global)
		return prb_error_create(PRB_ERROR_USAGE, "global tables are of a job: probing "
							 "cluster query");
	return session->global(session->global_context, &table->ask, scan);
}

void prb_session_on_global(struct prb_session *session, prb_global_reader *reader, void *context)
{
	session->global = reader;
	session->global_context = context;
}

static void deinit(struct prb_session *session)
{
	struct prb_global_table **table;

	prb_vec_each (table, &session->globals) {
		prb_partial_deinit(&(*table)->partial);
		free((*table)->name);
		free(*table);
	}
	prb_vec_free(&session->globals);
}

static const struct prb_table *find(const struct prb_session *session, const char *schema,
				    const char *name)
{
	struct prb_global_table *const *table;

	if (strcasecmp(schema, "global") != 0)
		return NULL;
	prb_vec_each (table, &session->globals)
		if (!strcasecmp((*table)->name, name))
			return &(*table)->spec;
	return NULL;
}

const struct prb_table_source prb_global_source = {.find = find, .deinit = deinit};

/** Describes the table. Flags for arguments and keys of one process do not apply to it. */
static void describe(struct prb_global_table *table)
{
	unsigned count = 0;

	for (const struct prb_column *c = table->ask.own->columns; c->name && count < MAX_COLUMNS;
	     c++)
		table->columns[count++] = (struct prb_column){
			.name = c->name,
			.type = c->type,
			.doc = c->doc,
			.unit = c->unit,
			.flags = (c->flags & (PRB_COLUMN_HIDDEN | PRB_COLUMN_TIME)) |
				 PRB_COLUMN_KEY | PRB_COLUMN_RANGE,
		};
	table->ask.own_count = count;
	memcpy(table->columns + count, places, sizeof(places));
	table->spec = (struct prb_table){
		.schema = "global",
		.name = table->name,
		.doc = table->ask.own->doc,
		.columns = table->columns,
		.flags = PRB_TABLE_GLOBAL | PRB_TABLE_COSTLY | PRB_TABLE_FAR,
		.rows = 10000,
		.scan = scan_global,
	};
}

static struct prb_error *declare(struct prb_session *session, const char *name)
{
	int rc = prb_declare_virtual(session, "global", name);

	if (rc == SQLITE_NOMEM)
		return prb_error_nomem();
	return rc ? prb_error_create(PRB_ERROR_FAILED, "declaring global.%.200s: %s", name,
				     sqlite3_errmsg(session->db))
		  : NULL;
}

static struct prb_error *add(struct prb_session *session, const char *schema, const char *name)
{
	const struct prb_table *own = prb_table_find(schema, name);
	struct prb_global_table *table, **place;

	if (!own)
		return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						       "no process has a table %.100s.%.100s",
						       schema, name),
				      "'probing tables' lists them");
	table = calloc(1, sizeof(*table));
	place = table ? prb_vec_push(&session->globals) : NULL;
	if (!place) {
		free(table);
		return prb_error_nomem();
	}
	*place = table;
	table->ask = (struct prb_global_ask){.own = own, .limit = -1};
	table->name = prb_format("%s.%s", own->schema, own->name);
	if (!table->name)
		return prb_error_nomem();
	describe(table);
	PRB_TRY(prb_session_prepared(session));
	PRB_TRY(prb_declare_schema(session, "global"));
	return declare(session, table->name);
}

/** Name of the table of the ranks' results. */
static const char REST[] = "by rank";

/** Makes a table of the ranks' results for @p partial, whose ownership is taken. */
static struct prb_error *add_rest(struct prb_session *session, struct prb_partial *partial)
{
	static const char *const names[] = {"c0",  "c1",  "c2",	 "c3",	"c4",  "c5",  "c6",  "c7",
					    "c8",  "c9",  "c10", "c11", "c12", "c13", "c14", "c15",
					    "c16", "c17", "c18", "c19", "c20", "c21", "c22", "c23",
					    "c24", "c25", "c26", "c27", "c28", "c29", "c30", "c31",
					    "c32", "c33", "c34", "c35", "c36", "c37", "c38", "c39"};
	struct prb_global_table *table = calloc(1, sizeof(*table)), **place;

	place = table ? prb_vec_push(&session->globals) : NULL;
	if (!place) {
		free(table);
		return prb_error_nomem();
	}
	*place = table;
	table->partial = *partial;
	*partial = (struct prb_partial){};
	table->name = strdup(REST);
	if (!table->name)
		return prb_error_nomem();
	for (unsigned i = 0; i < table->partial.columns && i < PRB_ARRAY_SIZE(names); i++)
		table->columns[i] = (struct prb_column){names[i], PRB_COLUMN_ANY, "Of each rank"};
	table->rest = (struct prb_table){
		.schema = "global", .name = REST, .doc = "Of each rank", .columns = table->columns};
	table->ask = (struct prb_global_ask){
		.own = &table->rest, .sql = table->partial.each, .limit = -1};
	describe(table);
	return declare(session, table->name);
}

static bool has_column(const void *context, const char *schema, const char *table,
		       const char *column, size_t length)
{
	const struct prb_table *own = prb_table_find(schema, table);

	(void)context;
	for (const struct prb_column *c = own ? own->columns : NULL; c && c->name; c++)
		if (strlen(c->name) == length && !strncasecmp(c->name, column, length))
			return true;
	return false;
}

static struct prb_error *check(struct prb_session *session, const char *sql)
{
	prb_auto_statement struct prb_statement *statement = NULL;
	size_t at = 0;

	return prb_session_prepare(session, sql, strlen(sql), &at, &statement);
}

/** Leaves work to the ranks. @p ret: the statement, possibly rewritten. */
static struct prb_error *push(struct prb_session *session, const char *sql, struct prb_str *ret)
{
	prb_auto_partial struct prb_partial partial = {};
	struct prb_global_table *table = session->globals.items[0];

	PRB_TRY(prb_partial_make(
		sql, &(struct prb_partial_table){.name = REST, .has_column = has_column},
		&partial));
	if (!partial.each) {
		table->partial = partial;
		partial = (struct prb_partial){};
		table->ask.where = table->partial.where;
		table->ask.limit = table->partial.limit;
		return NULL;
	}
	/* Errors refer to the statement as written. */
	PRB_TRY(check(session, prb_str_text(ret)));
	prb_str_truncate(ret, 0);
	prb_str_puts(ret, partial.rest);
	return add_rest(session, &partial);
}

/** The end of a literal, a quoted name or a comment that begins at @p at; else @p at. */
static const char *skip(const char *at)
{
	const char *end;

	if (*at == '\'' || *at == '"' || *at == '`') {
		end = strchr(at + 1, *at);
		return end ? end + 1 : at + strlen(at);
	}
	if (!strncmp(at, "--", 2))
		return strchrnul(at, '\n');
	if (!strncmp(at, "/*", 2)) {
		end = strstr(at + 2, "*/");
		return end ? end + 2 : at + strlen(at);
	}
	return at;
}

static size_t word_length(const char *at)
{
	size_t length = 0;

	while (isalnum((unsigned char)at[length]) || at[length] == '_')
		length++;
	return length;
}

/** Reads "global.SCHEMA.TABLE" at @p at; its length, 0 if it is something else. */
static size_t read_name(const char *at, char schema[64], char table[64])
{
	const char *part = at + strlen("global.");
	size_t first, second;

	if (strncasecmp(at, "global.", strlen("global.")) != 0)
		return 0;
	first = word_length(part);
	if (!first || first >= 64 || part[first] != '.')
		return 0;
	second = word_length(part + first + 1);
	if (!second || second >= 64)
		return 0;
	snprintf(schema, 64, "%.*s", (int)first, part);
	snprintf(table, 64, "%.*s", (int)second, part + first + 1);
	return strlen("global.") + first + 1 + second;
}

static struct prb_error *put_name(struct prb_session *session, const char *schema, const char *name,
				  struct prb_str *ret)
{
	prb_auto_free char *both = prb_format("%s.%s", schema, name);

	if (!both)
		return prb_error_nomem();
	if (!find(session, "global", both)) {
		if (session->globals.count == MAX_TABLES)
			return prb_error_create(PRB_ERROR_USAGE, "more than %d global tables",
						MAX_TABLES);
		PRB_TRY(add(session, schema, name));
	}
	prb_str_printf(ret, "global.\"%s\"", both);
	return NULL;
}

struct prb_error *prb_global_rewrite(struct prb_session *session, const char *sql,
				     struct prb_str *ret, size_t *count)
{
	char schema[64], table[64];

	for (const char *at = sql, *end; *at; at = end) {
		size_t length = word_length(at), whole;

		end = skip(at);
		if (end == at && !length)
			end++;
		whole = length ? read_name(at, schema, table) : 0;
		if (whole) {
			PRB_TRY(put_name(session, schema, table, ret));
			end = at + whole;
			continue;
		}
		end = length ? at + length : end;
		prb_str_append(ret, at, (size_t)(end - at));
	}
	*count = session->globals.count;
	if (*count == 1 && !ret->failed)
		PRB_TRY(push(session, sql, ret));
	return ret->failed ? prb_error_nomem() : NULL;
}

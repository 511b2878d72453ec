/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The source of tables of Python expressions: python.`EXPRESSION` is evaluated in the target when a
 * statement that names it is prepared, and again when that statement runs once more. Only in a
 * session that may run code (changes.h). An expression that may not be evaluated, or fails, is an
 * error.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "control/expression.h"
#include "sql/engine/changes.h"
#include "sql/engine/session_private.h"
#include "sql/engine/table_sources.h"

enum { MAX_TABLES = 16 };

struct prb_expression_table {
	struct prb_table spec;
	struct prb_column columns[PRB_EXPRESSION_COLUMNS + 1];
	char *expression;
	char *names[PRB_EXPRESSION_COLUMNS];
	unsigned column_count;
	/** Of the last evaluated target. */
	struct prb_expression_rows rows;
	struct prb_target *target;
	uint64_t generation; /**< of the statement that read them; 0: none */
};

static struct prb_error *evaluate(struct prb_expression_table *table, struct prb_session *session,
				  struct prb_target *target)
{
	prb_expression_rows_deinit(&table->rows);
	table->rows = (struct prb_expression_rows){};
	table->target = NULL;
	table->generation = 0;
	PRB_TRY(prb_expression_evaluate(target, table->expression, session->timeout, &table->rows));
	table->target = target;
	return NULL;
}

/** Index of the table's column in the rows: a new evaluation may have other columns. */
static int find_column(const struct prb_expression_table *table, unsigned column)
{
	for (unsigned i = 0; i < table->rows.columns; i++)
		if (!strcmp(table->rows.names[i], table->names[column]))
			return (int)i;
	return -1;
}

static void put(struct prb_scan *scan, const struct prb_expression_table *table, size_t row)
{
	for (unsigned i = 0; i < table->column_count; i++) {
		int column = find_column(table, i);
		const struct prb_expression_cell *cell =
			column < 0 ? NULL
				   : &table->rows.cells
					      .items[row * table->rows.columns + (unsigned)column];

		switch (cell ? cell->kind : PRB_EXPRESSION_NULL) {
		case PRB_EXPRESSION_NULL:
			break;
		case PRB_EXPRESSION_INTEGER:
			prb_put_integer(scan, i, cell->integer);
			break;
		case PRB_EXPRESSION_REAL:
			prb_put_real(scan, i, cell->real);
			break;
		case PRB_EXPRESSION_TEXT:
			prb_put_bytes(scan, i, prb_str_text(&table->rows.text) + cell->offset,
				      cell->length);
			break;
		}
	}
}

static struct prb_error *scan(struct prb_scan *scan)
{
	struct prb_expression_table *table = (struct prb_expression_table *)scan->table;
	struct prb_target *target = prb_instant_target(scan->instant);
	size_t count;

	if (table->target != target ||
	    (table->generation && table->generation != scan->session->generation))
		PRB_TRY(evaluate(table, scan->session, target));
	table->generation = scan->session->generation;
	count = table->rows.cells.count / PRB_MAX(table->rows.columns, 1);
	while (scan->position < count && !prb_scan_full(scan)) {
		PRB_TRY(prb_scan_row(scan));
		put(scan, table, scan->position++);
	}
	scan->more = scan->position < count;
	if (table->rows.more)
		prb_scan_note(scan, "%s has more than %zu rows: the others are left out",
			      table->expression, count);
	return NULL;
}

static void destroy(struct prb_expression_table *table)
{
	prb_expression_rows_deinit(&table->rows);
	for (unsigned i = 0; i < table->column_count; i++)
		free(table->names[i]);
	free(table->expression);
	free(table);
}

static struct prb_error *describe(struct prb_expression_table *table)
{
	for (unsigned i = 0; i < table->rows.columns; i++) {
		table->names[i] = strdup(table->rows.names[i]);
		if (!table->names[i])
			return prb_error_nomem();
		table->column_count++;
		table->columns[i] = (struct prb_column){
			.name = table->names[i],
			.type = PRB_COLUMN_ANY,
			.doc = "Of the value of the expression",
		};
	}
	table->spec = (struct prb_table){
		.schema = "python",
		.name = table->expression,
		.doc = "Value of an expression",
		.columns = table->columns,
		.flags = PRB_TABLE_COSTLY,
		.rows = 100,
		.scan = scan,
	};
	return NULL;
}

/** The columns come from the first target that can evaluate it. */
static struct prb_error *evaluate_first(struct prb_expression_table *table,
					struct prb_session *session)
{
	struct prb_error *err = NULL;
	struct prb_session_target *t;

	prb_vec_each (t, &session->targets) {
		prb_error_destroy(err);
		err = evaluate(table, session, t->target);
		if (!err)
			return NULL;
	}
	return err ? err
		   : prb_error_create(PRB_ERROR_USAGE,
				      "an expression is evaluated in a process: no target");
}

static struct prb_error *declare(struct prb_session *session, const char *expression)
{
	int rc = prb_declare_virtual(session, "python", expression);

	if (rc == SQLITE_NOMEM)
		return prb_error_nomem();
	return rc ? prb_error_create(PRB_ERROR_FAILED, "declaring %.200s: %s", expression,
				     sqlite3_errmsg(session->db))
		  : NULL;
}

static struct prb_error *may_evaluate(const struct prb_session *session, const char *expression)
{
	prb_auto_free char *what =
		prb_format("there is no table python.%.200s, and as an expression it would run "
			   "code in the process",
			   expression);

	return what ? prb_changes_check(session, false, what) : prb_error_nomem();
}

/** True if the statement quotes the word like a name, so that no typing error runs code. */
static bool is_quoted(const char *sql, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(sql, word); at; at = strstr(at + 1, word))
		if (at > sql && (at[-1] == '`' || at[-1] == '"') && at[length] == at[-1])
			return true;
	return false;
}

static struct prb_error *make(struct prb_session *session, const char *sql, const char *word,
			      bool *ret)
{
	static const char schema[] = "python.";
	struct prb_expression_table *table, **place;
	struct prb_error *err;

	*ret = false;
	if (strncasecmp(word, schema, strlen(schema)) != 0)
		return NULL;
	word += strlen(schema);
	if (session->expressions.count == MAX_TABLES || !is_quoted(sql, word))
		return NULL;
	PRB_TRY(may_evaluate(session, word));
	table = calloc(1, sizeof(*table));
	place = table ? prb_vec_push(&session->expressions) : NULL;
	if (!place) {
		free(table);
		return prb_error_nomem();
	}
	*place = table;
	table->expression = strdup(word);
	err = table->expression ? evaluate_first(table, session) : prb_error_nomem();
	if (!err)
		err = describe(table);
	if (!err)
		err = prb_declare_schema(session, "python");
	if (!err)
		err = declare(session, word);
	if (err) {
		session->expressions.count--;
		destroy(table);
		return err;
	}
	*ret = true;
	return NULL;
}

static void drop(struct prb_session *session)
{
	struct prb_expression_table **table;

	if (!session->expressions.count || sqlite3_next_stmt(session->db, NULL))
		return;
	prb_vec_each (table, &session->expressions) {
		char *sql = sqlite3_mprintf("DROP TABLE python.\"%w\"", (*table)->expression);

		(void)prb_declare_by(session, sql);
		sqlite3_free(sql);
		destroy(*table);
	}
	session->expressions.count = 0;
}

static void deinit(struct prb_session *session)
{
	struct prb_expression_table **table;

	prb_vec_each (table, &session->expressions)
		destroy(*table);
	prb_vec_free(&session->expressions);
}

static const struct prb_table *find(const struct prb_session *session, const char *schema,
				    const char *name)
{
	struct prb_expression_table **table;

	prb_vec_each (table, &session->expressions)
		if (!strcasecmp(schema, "python") && !strcmp((*table)->expression, name))
			return &(*table)->spec;
	return NULL;
}

const struct prb_table_source prb_expression_source = {
	.find = find,
	.make = make,
	.drop = drop,
	.deinit = deinit,
};

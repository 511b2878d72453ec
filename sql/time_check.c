/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/time_check.h"

#include <stdlib.h>
#include <string.h>

#include "dwarf/base/cleanup.h"
#include "sql/time_walk.h"

static void program_guard(struct prb_operations *program)
{
	struct prb_operation *op;

	prb_vec_each (op, &program->list)
		free(op->text);
	prb_vec_free(&program->list);
}

static struct prb_error *hint_time(struct prb_error *err)
{
	return prb_error_hint(err, "write TIMESTAMP '2026-01-02 03:04:05', now() or "
				   "now() - interval '5 minutes'");
}

struct prb_error *prb_time_complaint(const struct prb_column *column, const char *text)
{
	return hint_time(prb_error_create(PRB_ERROR_USAGE,
					  "%s is a number of seconds since the epoch, and "
					  "'%.60s' a text",
					  column->name, text));
}

static struct prb_error *complaint(const struct prb_time_mistake *mistake)
{
	const struct prb_operation *op = mistake->text;
	int length = (int)strcspn(op->detail + 1, "(");

	if (!op->text)
		return hint_time(prb_error_create(PRB_ERROR_USAGE,
						  "%s is a number of seconds since the epoch, and "
						  "%.*s() gives a text",
						  mistake->time->name, length, op->detail + 1));
	if (!op->number)
		return prb_time_complaint(mistake->time, op->text);
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "%s is a number of seconds since the epoch, and "
					       "'%.60s' in quotes a text here",
					       mistake->time->name, op->text),
			      "write the number without quotes");
}

static bool has_text(const char *sql)
{
	return strpbrk(sql, "'\"") || strcasestr(sql, "date(") || strcasestr(sql, "time(") ||
	       strcasestr(sql, "time_text(");
}

/** True if it has a text, and may have a column that is a time: by its name or by a star. */
static bool is_suspect(const char *sql)
{
	bool star = strchr(sql, '*');

	if (!has_text(sql))
		return false;
	for (const struct prb_table *const *t = prb_tables; *t; t++)
		for (const struct prb_column *c = (*t)->columns; c->name; c++)
			if (c->flags & PRB_COLUMN_TIME &&
			    (strcasestr(sql, c->name) || (star && strcasestr(sql, (*t)->name))))
				return true;
	return false;
}

static struct prb_error *take_text(sqlite3_stmt *stmt, struct prb_operation *op)
{
	sqlite3_value *value = sqlite3_value_dup(sqlite3_column_value(stmt, 5));

	if (!value)
		return prb_error_nomem();
	op->text = strdup((const char *)sqlite3_value_text(value));
	op->number = sqlite3_value_numeric_type(value) != SQLITE_TEXT;
	sqlite3_value_free(value);
	return op->text ? NULL : prb_error_nomem();
}

static struct prb_error *load(sqlite3_stmt *stmt, struct prb_operations *program)
{
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		struct prb_operation *op = prb_vec_push(&program->list);
		const char *name = (const char *)sqlite3_column_text(stmt, 1);
		const char *p4 = (const char *)sqlite3_column_text(stmt, 5);

		if (!op || !name)
			return prb_error_nomem();
		op->p1 = sqlite3_column_int(stmt, 2);
		op->p2 = sqlite3_column_int(stmt, 3);
		op->p3 = sqlite3_column_int(stmt, 4);
		op->p5 = sqlite3_column_int(stmt, 6);
		snprintf(op->name, sizeof(op->name), " %s ", name);
		if (!strcmp(name, "String8") && p4)
			PRB_TRY(take_text(stmt, op));
		else if (!strcmp(name, "VOpen") && p4 && !strncmp(p4, "vtab:", 5))
			op->table = prb_vtab_if_ours(
				(sqlite3_vtab *)(uintptr_t)strtoull(p4 + 5, NULL, 16));
		else if (p4)
			snprintf(op->detail, sizeof(op->detail), " %s ", p4);
	}
	return NULL;
}

struct prb_error *prb_check_times(struct prb_session *session, const char *sql)
{
	__attribute__((cleanup(program_guard))) struct prb_operations program = {};
	prb_auto_free char *explain = NULL;
	struct prb_time_mistake mistake;
	sqlite3_stmt *stmt = NULL;

	if (!is_suspect(sql))
		return NULL;
	explain = prb_format("EXPLAIN %s", sql);
	if (!explain)
		return prb_error_nomem();

	struct prb_plan plan = session->plan;
	int rc = sqlite3_prepare_v2(session->db, explain, -1, &stmt, NULL);
	session->plan = plan;
	struct prb_error *err = rc ? NULL : load(stmt, &program);
	sqlite3_finalize(stmt);
	PRB_TRY(err);
	PRB_TRY(prb_time_walk(&program, &mistake));
	return mistake.time ? complaint(&mistake) : NULL;
}

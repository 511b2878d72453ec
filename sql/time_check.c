/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The program of a statement is walked once, in the order in which it is written, its constants
 * first; registers are followed that hold a time or a text. Whatever else is done with a register
 * makes it neither: what is not understood is never refused.
 */
#include "sql/time_check.h"

#include <stdlib.h>
#include <string.h>

#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/base/vec.h"
#include "sql/vtab_private.h"

enum { MAX_NUMBER = 4096 /* of registers and cursors that are followed */ };

/** What a register holds, or a list in a cursor: a time, a text, or neither. */
struct content {
	const struct prb_column *time;
	const char *text; /**< of an operation */
	size_t at;	  /**< the operation that has put it there */
};

struct operation {
	char name[16];
	int p1, p2, p3;
	char *text; /**< String8: the text, if it is no number */
	struct prb_vtab *table;
};

struct walk {
	PRB_VEC(struct operation) program;
	struct content registers[MAX_NUMBER], lists[MAX_NUMBER];
	struct prb_vtab *tables[MAX_NUMBER];
	size_t now; /**< the operation that is looked at */
	struct prb_error *complaint;
};

static void walk_guard(struct walk **walk)
{
	struct operation *op;

	if (!*walk)
		return;
	prb_vec_each (op, &(*walk)->program)
		free(op->text);
	prb_vec_free(&(*walk)->program);
	free(*walk);
}

struct prb_error *prb_time_complaint(const struct prb_column *column, const char *text)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "%s is a number of seconds since the epoch, and "
					       "'%.60s' a text",
					       column->name, text),
			      "write TIMESTAMP '2026-01-02 03:04:05', now() or "
			      "now() - interval '5 minutes'");
}

/** True if it has a text, and the name of a column that is a time. */
static bool is_suspect(const char *sql)
{
	if (!strchr(sql, '\'') && !strchr(sql, '"'))
		return false;
	for (const struct prb_table *const *t = prb_tables; *t; t++)
		for (const struct prb_column *c = (*t)->columns; c->name; c++)
			if (c->flags & PRB_COLUMN_TIME && strcasestr(sql, c->name))
				return true;
	return false;
}

static struct prb_error *take_text(sqlite3_stmt *stmt, struct operation *op)
{
	sqlite3_value *value = sqlite3_value_dup(sqlite3_column_value(stmt, 5));

	if (!value)
		return prb_error_nomem();
	bool number = sqlite3_value_numeric_type(value) != SQLITE_TEXT;
	op->text = number ? NULL : strdup((const char *)sqlite3_value_text(value));
	sqlite3_value_free(value);
	return number || op->text ? NULL : prb_error_nomem();
}

static struct prb_error *load(struct walk *w, sqlite3_stmt *stmt)
{
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		struct operation *op = prb_vec_push(&w->program);
		const char *name = (const char *)sqlite3_column_text(stmt, 1);
		const char *p4 = (const char *)sqlite3_column_text(stmt, 5);

		if (!op || !name)
			return prb_error_nomem();
		*op = (struct operation){.p1 = sqlite3_column_int(stmt, 2),
					 .p2 = sqlite3_column_int(stmt, 3),
					 .p3 = sqlite3_column_int(stmt, 4)};
		snprintf(op->name, sizeof(op->name), "%s", name);
		if (!strcmp(name, "String8") && p4)
			PRB_TRY(take_text(stmt, op));
		else if (!strcmp(name, "VOpen") && p4 && !strncmp(p4, "vtab:", 5))
			op->table = prb_vtab_if_ours(
				(sqlite3_vtab *)(uintptr_t)strtoull(p4 + 5, NULL, 16));
	}
	return NULL;
}

static struct content get(const struct content *contents, int number)
{
	return number >= 0 && number < MAX_NUMBER ? contents[number] : (struct content){};
}

/** True if one arm of a CASE or coalesce() has put @p old there, and this is another arm. */
static bool is_other_arm(const struct walk *w, const struct content *old)
{
	const struct operation *next = &w->program.items[old->at + 1];

	return old->at && old->at + 1 < w->now && next->p2 > (int)w->now &&
	       (!strcmp(next->name, "Goto") || !strcmp(next->name, "NotNull"));
}

/** What is this in one arm and that in another is neither. */
static void set(struct walk *w, int number, struct content content)
{
	struct content old = get(w->registers, number);

	if (number < 0 || number >= MAX_NUMBER)
		return;
	if (is_other_arm(w, &old) && (!old.time != !content.time || !old.text != !content.text))
		content = (struct content){};
	content.at = w->now;
	w->registers[number] = content;
}

static void compare(struct walk *w, struct content a, struct content b)
{
	const struct prb_column *time = a.time ? a.time : b.time;
	const char *text = a.text ? a.text : b.text;

	if (time && text && !w->complaint)
		w->complaint = prb_time_complaint(time, text);
}

/** Any of the names, each between blanks. */
static bool is_any(const struct operation *op, const char *names)
{
	char name[24];

	snprintf(name, sizeof(name), " %s ", op->name);
	return strstr(names, name) != NULL;
}

static const struct prb_column *time_column(const struct walk *w, const struct operation *op)
{
	struct prb_vtab *table = op->p1 >= 0 && op->p1 < MAX_NUMBER ? w->tables[op->p1] : NULL;
	const struct prb_column *column = table ? prb_vtab_column(table, op->p2) : NULL;

	return column && column->flags & PRB_COLUMN_TIME ? column : NULL;
}

static void take_copy(struct walk *w, const struct operation *op)
{
	int more = !strcmp(op->name, "Copy") ? op->p3 : !strcmp(op->name, "Move") ? op->p3 - 1 : 0;

	for (int i = 0; i <= PRB_MIN(more, MAX_NUMBER); i++)
		set(w, op->p2 + i, get(w->registers, op->p1 + i));
}

/** A list of values is a table of one column in memory. */
static void take_list(struct walk *w, const struct operation *op)
{
	struct content content = {};

	if (!strcmp(op->name, "MakeRecord")) {
		if (op->p2 == 1)
			content.text = get(w->registers, op->p1).text;
		set(w, op->p3, content);
	} else if (!strcmp(op->name, "IdxInsert")) {
		content = get(w->registers, op->p2);
		if (content.text && op->p1 >= 0 && op->p1 < MAX_NUMBER)
			w->lists[op->p1] = content;
	} else if (!strcmp(op->name, "Column")) {
		set(w, op->p3, op->p2 ? content : get(w->lists, op->p1));
	} else {
		compare(w, get(w->registers, op->p3), get(w->lists, op->p1));
	}
}

static void follow(struct walk *w, size_t at)
{
	const struct operation *op = &w->program.items[at];
	struct content a = get(w->registers, op->p1), b = get(w->registers, op->p2);

	w->now = at;
	if (!strcmp(op->name, "VOpen")) {
		if (op->p1 >= 0 && op->p1 < MAX_NUMBER)
			w->tables[op->p1] = op->table;
	} else if (!strcmp(op->name, "VColumn")) {
		set(w, op->p3, (struct content){.time = time_column(w, op)});
	} else if (!strcmp(op->name, "String8")) {
		set(w, op->p2, (struct content){.text = op->text});
	} else if (is_any(op, " Copy SCopy Move ")) {
		take_copy(w, op);
	} else if (is_any(op, " MakeRecord IdxInsert Column Found NotFound ")) {
		take_list(w, op);
	} else if (is_any(op, " OpenEphemeral OpenAutoindex OpenPseudo ")) {
		if (op->p1 >= 0 && op->p1 < MAX_NUMBER)
			w->lists[op->p1] = (struct content){};
	} else if (is_any(op, " Eq Ne Lt Le Gt Ge ")) {
		compare(w, a, get(w->registers, op->p3));
	} else if (is_any(op, " Add Subtract ")) {
		set(w, op->p3, (struct content){.time = a.time ? a.time : b.time});
	} else if (is_any(op, " Integer Int64 Real Blob Variable Rowid Not BitNot Sequence "
			      "NewRowid Count ")) {
		set(w, op->p2, (struct content){});
	} else if (is_any(op, " Cast AggFinal ")) {
		set(w, op->p1, (struct content){});
	} else if (is_any(op, " Function PureFunc Multiply Divide Remainder Concat And Or BitAnd "
			      "BitOr ShiftLeft ShiftRight AggValue IfNullRow ")) {
		set(w, op->p3, (struct content){});
	} else if (!strcmp(op->name, "Null")) {
		for (int i = op->p2; i <= PRB_MIN(PRB_MAX(op->p2, op->p3), MAX_NUMBER); i++)
			set(w, i, (struct content){});
	}
}

struct prb_error *prb_check_times(struct prb_session *session, const char *sql)
{
	__attribute__((cleanup(walk_guard))) struct walk *w = NULL;
	prb_auto_free char *explain = NULL;
	sqlite3_stmt *stmt = NULL;

	if (!is_suspect(sql))
		return NULL;
	w = calloc(1, sizeof(*w));
	explain = prb_format("EXPLAIN %s", sql);
	if (!w || !explain)
		return prb_error_nomem();

	struct prb_plan plan = session->plan;
	int rc = sqlite3_prepare_v2(session->db, explain, -1, &stmt, NULL);
	session->plan = plan;
	struct prb_error *err = rc ? NULL : load(w, stmt);
	sqlite3_finalize(stmt);
	if (err || !w->program.count)
		return err;

	/* Constants are made at the end, where the first operation leads, and used before. */
	size_t count = w->program.count;
	size_t init = PRB_MIN((size_t)PRB_MAX(w->program.items[0].p2, 1), count);
	for (size_t i = init; i < count; i++)
		follow(w, i);
	for (size_t i = 1; i < init; i++)
		follow(w, i);
	return prb_steal(&w->complaint);
}

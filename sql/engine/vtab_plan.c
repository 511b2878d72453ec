/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Planning: chooses the constraints that reach a scan, and sums up the needs of a statement's
 * tables, so that the target is read once, and only as far as needed.
 */
#include <limits.h>

#include "base/checked.h"
#include "sql/engine/vtab_private.h"

enum {
	/*
	 * The description of a wait uses the innermost frames, those of threading and queue: at
	 * most this many.
	 */
	FRAMES_OF_WAITS = 8,
};

/** The result of one plan's constraints. */
struct choice {
	struct prb_str text; /**< see prb_vtab_best_index() */
	unsigned count;	     /**< keys with a value */
	unsigned keys;
	bool keyed;	/**< the thread is constrained */
	bool varies;	/**< … to a value known only when the statement runs */
	int64_t tid;	/**< … or to this value */
	int64_t depth;	/**< frames of a thread that can be rows; INT64_MAX: all */
	int64_t limit;	/**< rows that SQLite takes at most; INT64_MAX: unknown */
	int64_t offset; /**< … after these rows are skipped */
	bool filtered;	/**< rows may be dropped for reasons other than thread and depth */
};

const struct prb_column *prb_vtab_column(const struct prb_vtab *table, int index)
{
	int own = index - (int)table->lead;

	return own >= 0 && own < (int)table->column_count ? &table->spec->columns[own] : NULL;
}

/** The integer that a constraint compares with, if known before the statement runs. */
static bool known_value(sqlite3_index_info *info, int index, int64_t *ret)
{
	sqlite3_value *value = NULL;

	if (sqlite3_vtab_rhs_value(info, index, &value) != SQLITE_OK ||
	    sqlite3_value_type(value) != SQLITE_INTEGER)
		return false;
	*ret = sqlite3_value_int64(value);
	return true;
}

static bool is_constant(sqlite3_index_info *info, int index)
{
	sqlite3_value *value = NULL;

	return sqlite3_vtab_rhs_value(info, index, &value) == SQLITE_OK && value;
}

static void note_thread(sqlite3_index_info *info, int index, struct choice *choice)
{
	/* Two constraints on the thread: the result is not evaluated here. */
	choice->varies = choice->keyed ||
			 info->aConstraint[index].op != SQLITE_INDEX_CONSTRAINT_EQ ||
			 !known_value(info, index, &choice->tid);
	choice->keyed = true;
}

/** depth < 5, depth <= 4, depth = 4: at most five frames can be rows. */
static void note_depth(sqlite3_index_info *info, int index, struct choice *choice)
{
	unsigned char op = info->aConstraint[index].op;
	int64_t value;

	if ((op != SQLITE_INDEX_CONSTRAINT_LT && op != SQLITE_INDEX_CONSTRAINT_LE &&
	     op != SQLITE_INDEX_CONSTRAINT_EQ) ||
	    !known_value(info, index, &value) || value < 0) {
		choice->filtered = true;
		return;
	}
	value += op != SQLITE_INDEX_CONSTRAINT_LT && value < INT64_MAX;
	choice->depth = PRB_MIN(choice->depth, value);
}

static bool note_limit(sqlite3_index_info *info, int index, struct choice *choice)
{
	unsigned char op = info->aConstraint[index].op;
	int64_t value;

	if (op < SQLITE_INDEX_CONSTRAINT_LIMIT || op > SQLITE_INDEX_CONSTRAINT_OFFSET)
		return false;
	if (!known_value(info, index, &value) || value < 0)
		choice->filtered = true;
	else if (op == SQLITE_INDEX_CONSTRAINT_LIMIT)
		choice->limit = value;
	else
		choice->offset = value;
	return true;
}

/** '<' or '>' if the constraint is a bound of a column that takes bounds, else 0. */
static char bound_of(const struct prb_column *column, const struct sqlite3_index_constraint *c)
{
	if (!column || !(column->flags & PRB_COLUMN_RANGE) || !c->usable)
		return 0;
	switch (c->op) {
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE:
		return '<';
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
		return '>';
	default:
		return 0;
	}
}

/** Adds one constraint to the choice; false if this plan is impossible. */
static bool choose(const struct prb_vtab *table, sqlite3_index_info *info, int index,
		   struct choice *choice)
{
	const struct sqlite3_index_constraint *c = &info->aConstraint[index];

	if (note_limit(info, index, choice))
		return true;
	const struct prb_column *column = prb_vtab_column(table, c->iColumn);
	unsigned flags = column ? column->flags : 0;
	bool equality = c->op == SQLITE_INDEX_CONSTRAINT_EQ;
	bool thread = flags & PRB_COLUMN_THREAD;
	char bound = bound_of(column, c);

	if (flags & PRB_COLUMN_DEPTH)
		note_depth(info, index, choice);
	else if (!thread || !equality)
		choice->filtered = true;
	/* Without the thread, such a plan would return the rows of another thread. */
	if (thread && equality && !c->usable && table->spec->needs != table->spec->needs_keyed)
		return false;
	if (flags & PRB_COLUMN_REQUIRED && equality && !c->usable)
		return false;
	if (table->spec->flags & PRB_TABLE_FAR && !is_constant(info, index))
		return true;
	if (!(flags & PRB_COLUMN_KEY) || choice->keys == PRB_MAX_KEYS ||
	    (equality ? !c->usable : !thread && !bound))
		return true;
	if (thread)
		note_thread(info, index, choice);
	choice->keys++;
	prb_str_printf(&choice->text, ",%d%.1s", (int)(column - table->spec->columns),
		       equality ? ""
		       : bound	? &bound
				: "?");
	if (equality || bound)
		info->aConstraintUsage[index].argvIndex = (int)++choice->count;
	return true;
}

/** Refuses to compare seconds with a text, which is never useful. */
static struct prb_error *check_time(const struct prb_vtab *table, sqlite3_index_info *info,
				    int index)
{
	const struct sqlite3_index_constraint *c = &info->aConstraint[index];
	const struct prb_column *column = prb_vtab_column(table, c->iColumn);
	sqlite3_value *value = NULL;

	if (!column || !(column->flags & PRB_COLUMN_TIME) ||
	    c->op >= SQLITE_INDEX_CONSTRAINT_LIMIT ||
	    sqlite3_vtab_rhs_value(info, index, &value) != SQLITE_OK ||
	    sqlite3_value_numeric_type(value) != SQLITE_TEXT)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "%s is a number of seconds since the epoch, and "
					       "'%.60s' a text",
					       column->name,
					       (const char *)sqlite3_value_text(value)),
			      "write TIMESTAMP '2026-01-02 03:04:05', now() or "
			      "now() - interval '5 minutes'");
}

/** True if no order is requested, or the one in which rows come. */
static bool in_order(const struct prb_vtab *table, const sqlite3_index_info *info)
{
	const struct prb_column *column;

	if (!info->nOrderBy)
		return true;
	column = prb_vtab_column(table, info->aOrderBy[0].iColumn);
	return info->nOrderBy == 1 && !info->aOrderBy[0].desc && column &&
	       column->flags & PRB_COLUMN_DEPTH;
}

/** Number of frames of each thread that this table needs; UINT_MAX: all. */
static unsigned frames_needed(const struct prb_vtab *table, const sqlite3_index_info *info,
			      unsigned needs, const struct choice *choice)
{
	int64_t frames = choice->depth, rows;
	bool deep = false;

	for (const struct prb_column *c = table->spec->columns; c->name; c++)
		deep |= c->flags & PRB_COLUMN_DEPTH;
	if (!deep)
		return needs & PRB_NEED_ALL_FRAMES ? UINT_MAX : FRAMES_OF_WAITS;
	/* Without other conditions the first rows are the innermost frames. */
	if (!choice->filtered && table->spec->flags & PRB_TABLE_FRAMES && in_order(table, info) &&
	    !__builtin_add_overflow(choice->limit, choice->offset, &rows))
		frames = PRB_MIN(frames, rows);
	return (unsigned)PRB_MIN(PRB_MAX(frames, FRAMES_OF_WAITS), UINT_MAX);
}

static unsigned needs_of(const struct prb_vtab *table, uint64_t used, const struct choice *choice)
{
	const struct prb_table *spec = table->spec;
	unsigned result = choice->keyed ? spec->needs_keyed : spec->needs;

	for (unsigned i = 0; i < table->column_count; i++)
		if (used >> PRB_MIN(i, 63u) & 1)
			result |= spec->columns[i].needs;
	return result;
}

/** Adds this table's needs to the statement's. */
static void plan(struct prb_vtab *table, const sqlite3_index_info *info, uint64_t used,
		 const struct choice *choice)
{
	struct prb_plan *plan = &table->session->plan;
	unsigned needs = needs_of(table, used, choice);
	bool one = choice->keyed && !choice->varies && choice->tid > 0 && choice->tid <= INT32_MAX;

	if (!needs)
		return;
	plan->needs |= needs;
	if (!one || (plan->planned && plan->tid != choice->tid))
		plan->several = true;
	plan->tid = one ? (pid_t)choice->tid : 0;
	unsigned frames = frames_needed(table, info, needs, choice);
	plan->frames = plan->planned ? PRB_MAX(plan->frames, frames) : frames;
	plan->planned = true;
}

/**
 * Takes over a GROUP BY of the table's own columns. Only with one target, since each target has its
 * own scan.
 */
static void choose_groups(const struct prb_vtab *table, sqlite3_index_info *info,
			  struct choice *choice)
{
	enum { FOR_GROUPS = 1 }; /* value of sqlite3_vtab_distinct() for GROUP BY */

	if (!(table->spec->flags & PRB_TABLE_LONG) || table->session->targets.count != 1 ||
	    !info->nOrderBy || info->nOrderBy > PRB_GROUP_KEYS ||
	    sqlite3_vtab_distinct(info) != FOR_GROUPS)
		return;
	for (int i = 0; i < info->nOrderBy; i++)
		if (!prb_vtab_column(table, info->aOrderBy[i].iColumn))
			return;
	for (int i = 0; i < info->nOrderBy; i++)
		prb_str_printf(&choice->text, ";%u%c",
			       (unsigned)(prb_vtab_column(table, info->aOrderBy[i].iColumn) -
					  table->spec->columns),
			       info->aOrderBy[i].desc ? '-' : '+');
	info->orderByConsumed = 1;
}

int prb_vtab_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	struct prb_vtab *table = prb_vtab_of(vtab);
	struct choice choice = {.depth = INT64_MAX, .limit = INT64_MAX};
	uint64_t used = info->colUsed >> table->lead;
	struct prb_error *err = NULL;
	bool possible = true;

	/* Bit 63 means all columns from 63 on. */
	if (table->lead && info->colUsed >> 63)
		used |= UINT64_MAX << (63 - table->lead);
	prb_str_printf(&choice.text, "%llx", (unsigned long long)used);
	for (int i = 0; possible && !err && i < info->nConstraint; i++) {
		possible = choose(table, info, i, &choice);
		err = check_time(table, info, i);
	}
	if (possible && !err)
		choose_groups(table, info, &choice);
	if (possible && !err && !choice.text.failed)
		info->idxStr = sqlite3_mprintf("%s", prb_str_text(&choice.text));
	prb_str_deinit(&choice.text);
	if (err)
		return prb_vtab_fail(table, err);
	if (!possible)
		return SQLITE_CONSTRAINT;
	if (!info->idxStr)
		return SQLITE_NOMEM;
	info->needToFreeIdxStr = 1;
	plan(table, info, used, &choice);
	/*
	 * Each key must lower the cost: of two plans with the same cost SQLite takes the one that
	 * depends on fewer other tables, and would drop the key.
	 */
	double rows = PRB_MAX(table->spec->rows, 1);
	for (unsigned i = 0; i < choice.count; i++)
		rows = PRB_MAX(rows / 20, 1);
	info->estimatedRows = (sqlite3_int64)rows;
	info->estimatedCost = rows + 10.0 / (1 + choice.count);
	return SQLITE_OK;
}

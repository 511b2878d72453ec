/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/time_walk.h"

#include <stdlib.h>
#include <string.h>

#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"

enum {
	MAX_NUMBER = 4096, /* of registers and cursors that are followed */
	MAX_PARTS = 1 << 16,
	NO_CURSOR = -1,
	NO_RECORD = -1,
	/* Of comparisons: texts that read as numbers are compared as such. From SQLite's headers.
	 */
	AFFINITY = 0x47,
	AFFINITY_NUMERIC = 0x43,
};

enum kind {
	OTHER,
	NOTHING, /* NULL, which compares with nothing, and may stand in the place of anything */
	NUMBER,	 /* a constant: it may stand in the place of a time */
	TIME,
	TEXT,
	RECORD,
};

/* What a register holds. */
struct content {
	enum kind kind;
	const struct prb_column *time;
	const struct prb_operation *text;
	size_t at;	     /* the operation that has put it there */
	size_t first, count; /* of a record's columns, in `parts` */
};

/* A column of a table in memory. */
struct part {
	struct content content;		  /* of all its rows */
	const struct prb_operation *text; /* that any of them is */
	bool time;			  /* … or a time */
};

struct cursor {
	struct prb_vtab *table;
	size_t first, count; /* columns, in `parts` */
	int alias;	     /* another cursor whose rows these are; NO_CURSOR */
	int record;	     /* the register that holds its one row; NO_RECORD */
	bool filled;
	size_t opened; /* the operation; 0: none */
	bool doubtful; /* opened in two places: nothing is known of it */
};

struct walk {
	const struct prb_operations *program;
	size_t count; /* of each */
	struct content *registers;
	struct cursor *cursors;
	PRB_VEC(struct part) parts;
	size_t now; /* the operation that is looked at */
	bool last;  /* the second time, which complains */
	bool failed;
	struct prb_time_mistake mistake;
};

static void walk_guard(struct walk *walk)
{
	prb_vec_free(&walk->parts);
	free(walk->registers);
	free(walk->cursors);
}

/* Whether a name between blanks is one of many. */
static bool is_any(const char *name, const char *names)
{
	return strstr(names, name) != NULL;
}

static bool is_known(const struct walk *w, int number)
{
	return number >= 0 && (size_t)number < w->count;
}

static struct content get(const struct walk *w, int number)
{
	return is_known(w, number) ? w->registers[number] : (struct content){};
}

static struct content merge(struct content a, struct content b)
{
	if (a.kind == NOTHING || (a.kind == NUMBER && b.kind == TIME))
		return b;
	if (b.kind == NOTHING || b.kind == a.kind || (a.kind == TIME && b.kind == NUMBER))
		return a;
	return (struct content){};
}

/* True if one arm of a CASE or coalesce() has put @p old there, and this is another arm. */
static bool is_other_arm(const struct walk *w, const struct content *old)
{
	const struct prb_operation *next = &w->program->list.items[old->at + 1];

	if (!old->at || old->at + 2 >= w->program->list.count)
		return false;
	if (is_any(next->name, " RealAffinity "))
		next++;
	return old->at + 1 < w->now && next->p2 > (int)w->now &&
	       is_any(next->name, " Goto NotNull ");
}

/* What is this in one arm and that in another is both, as far as that goes. */
static void set(struct walk *w, int number, struct content content)
{
	struct content old = get(w, number);

	if (!is_known(w, number))
		return;
	if (is_other_arm(w, &old))
		content = merge(old, content);
	content.at = w->now;
	w->registers[number] = content;
}

static void set_kind(struct walk *w, int number, enum kind kind)
{
	set(w, number, (struct content){.kind = kind});
}

/* @p numeric: texts that read as numbers become such before they are compared. */
static void complain(struct walk *w, const struct prb_column *time,
		     const struct prb_operation *text, bool numeric)
{
	if (w->last && !w->mistake.time && !(numeric && text->number))
		w->mistake = (struct prb_time_mistake){time, text};
}

static void compare(struct walk *w, const struct prb_operation *op)
{
	struct content a = get(w, op->p1), b = get(w, op->p3);
	bool numeric = (op->p5 & AFFINITY) >= AFFINITY_NUMERIC;

	if (a.kind == TIME && b.kind == TEXT)
		complain(w, a.time, b.text, numeric);
	else if (a.kind == TEXT && b.kind == TIME)
		complain(w, b.time, a.text, numeric);
}

/* Tables in memory */

static struct cursor *find_cursor(struct walk *w, int number)
{
	for (size_t hops = 0; is_known(w, number) && hops < w->count; hops++) {
		struct cursor *cursor = &w->cursors[number];

		if (cursor->doubtful)
			return NULL;
		if (cursor->alias == NO_CURSOR)
			return cursor;
		number = cursor->alias;
	}
	return NULL;
}

static void open_cursor(struct walk *w, const struct prb_operation *op)
{
	if (!is_known(w, op->p1))
		return;

	struct cursor *cursor = &w->cursors[op->p1];

	cursor->doubtful |= cursor->opened && cursor->opened != w->now;
	cursor->opened = w->now;
	cursor->table = op->table;
	if (!strcmp(op->name, " OpenDup ") && op->p2 != op->p1)
		cursor->alias = op->p2;
	else if (is_any(op->name, " OpenPseudo "))
		cursor->record = op->p2;
}

static bool add_parts(struct walk *w, size_t count, size_t *first)
{
	if (w->parts.count + count > MAX_PARTS)
		return false;
	if (!prb_vec_reserve(&w->parts, count)) {
		w->failed = true;
		return false;
	}
	*first = w->parts.count;
	memset(w->parts.items + *first, 0, count * sizeof(*w->parts.items));
	w->parts.count += count;
	return true;
}

static void make_record(struct walk *w, const struct prb_operation *op)
{
	struct content record = {.kind = RECORD, .count = (size_t)PRB_MAX(op->p2, 0)};

	if (!add_parts(w, record.count, &record.first)) {
		set_kind(w, op->p3, OTHER);
		return;
	}
	for (size_t i = 0; i < record.count; i++) {
		struct content content = get(w, op->p1 + (int)i);

		w->parts.items[record.first + i] = (struct part){
			.content = content,
			.text = content.kind == TEXT ? content.text : NULL,
			.time = content.kind == TIME,
		};
	}
	set(w, op->p3, record);
}

static void insert(struct walk *w, const struct prb_operation *op)
{
	struct cursor *cursor = find_cursor(w, op->p1);
	struct content record = get(w, op->p2);

	if (!cursor)
		return;
	if (record.kind != RECORD || (cursor->filled && cursor->count != record.count)) {
		cursor->doubtful = true;
		return;
	}
	if (!cursor->filled) {
		if (!add_parts(w, record.count, &cursor->first)) {
			cursor->doubtful = true;
			return;
		}
		cursor->count = record.count;
	}
	for (size_t i = 0; i < record.count; i++) {
		struct part *part = &w->parts.items[cursor->first + i];
		const struct part *more = &w->parts.items[record.first + i];

		part->content =
			cursor->filled ? merge(part->content, more->content) : more->content;
		part->text = part->text ? part->text : more->text;
		part->time |= more->time;
	}
	cursor->filled = true;
}

/* The row at which a cursor stands, as a record. */
static void take_row(struct walk *w, const struct prb_operation *op)
{
	const struct cursor *cursor = find_cursor(w, op->p1);
	struct content row = {};

	if (cursor && cursor->filled)
		row = (struct content){
			.kind = RECORD, .first = cursor->first, .count = cursor->count};
	set(w, op->p2, row);
}

static const struct part *find_part(struct walk *w, int number, size_t column)
{
	const struct cursor *cursor = find_cursor(w, number);
	struct content row = {};

	if (!cursor)
		return NULL;
	if (cursor->record != NO_RECORD)
		row = get(w, cursor->record);
	else if (cursor->filled)
		row = (struct content){.first = cursor->first, .count = cursor->count};
	return column < row.count ? &w->parts.items[row.first + column] : NULL;
}

static void take_column(struct walk *w, const struct prb_operation *op)
{
	const struct part *part = op->p2 >= 0 ? find_part(w, op->p1, (size_t)op->p2) : NULL;

	set(w, op->p3, part ? part->content : (struct content){});
}

static void take_virtual(struct walk *w, const struct prb_operation *op)
{
	const struct cursor *cursor = find_cursor(w, op->p1);
	const struct prb_column *column =
		cursor && cursor->table ? prb_vtab_column(cursor->table, op->p2) : NULL;

	if (column && column->flags & PRB_COLUMN_TIME)
		set(w, op->p3, (struct content){.kind = TIME, .time = column});
	else
		set_kind(w, op->p3, OTHER);
}

static void look_for(struct walk *w, const struct content *content, const struct part *part)
{
	if (!part)
		return;
	/* Rows of both kinds are no list that somebody wrote. */
	if (content->kind == TIME && part->text && !part->time)
		complain(w, content->time, part->text, true);
	else if (content->kind == TEXT && part->content.kind == TIME)
		complain(w, part->content.time, content->text, true);
}

/* Rows are looked for by some registers, or by a record of them. */
static void look_up(struct walk *w, const struct prb_operation *op)
{
	size_t count = strtoul(op->detail, NULL, 10);
	struct content record = get(w, op->p3);

	if (!count && record.kind == RECORD) {
		for (size_t i = 0; i < record.count; i++)
			look_for(w, &w->parts.items[record.first + i].content,
				 find_part(w, op->p1, i));
		return;
	}
	for (size_t i = 0; i < PRB_MIN(count, (size_t)MAX_NUMBER); i++) {
		struct content content = get(w, op->p3 + (int)i);

		look_for(w, &content, find_part(w, op->p1, i));
	}
}

/* Registers */

/* Functions that make a time of one, with the number of that argument. */
static int time_argument(const char *function)
{
	if (is_any(function, " min(1) max(1) avg(1) median(1) percentile_cont(2) "
			     "percentile_disc(2) round(1) round(2) floor(1) ceil(1) ceiling(1) "
			     "trunc(1) abs(1) nullif(2) date_add(2) date_sub(2) "))
		return 0;
	return is_any(function, " date_trunc(2) date_bin(2) date_bin(3) ") ? 1 : -1;
}

static void call(struct walk *w, const struct prb_operation *op)
{
	int argument = time_argument(op->detail);
	struct content content = argument < 0 ? (struct content){} : get(w, op->p2 + argument);

	if (content.kind == TIME || (content.kind == TEXT && is_any(op->detail, " min(1) max(1) ")))
		set(w, op->p3, content);
	else if (is_any(op->detail, " date(-1) time(-1) datetime(-1) time_text(1) "))
		set(w, op->p3, (struct content){.kind = TEXT, .text = op});
	else
		set_kind(w, op->p3, OTHER);
}

static void add(struct walk *w, const struct prb_operation *op)
{
	struct content a = get(w, op->p1), b = get(w, op->p2);

	/* What is between two times is none. */
	if ((a.kind == TIME) == (b.kind == TIME))
		set_kind(w, op->p3, OTHER);
	else
		set(w, op->p3, a.kind == TIME ? a : b);
}

static void copy(struct walk *w, const struct prb_operation *op)
{
	int more = is_any(op->name, " Copy ")	? op->p3
		   : is_any(op->name, " Move ") ? op->p3 - 1
						: 0;

	for (int i = 0; i <= PRB_MIN(more, MAX_NUMBER); i++)
		set(w, op->p2 + i, get(w, op->p1 + i));
}

static void put_null(struct walk *w, const struct prb_operation *op)
{
	for (int i = op->p2; i <= PRB_MIN(PRB_MAX(op->p2, op->p3), MAX_NUMBER); i++)
		set_kind(w, i, NOTHING);
}

static void cast(struct walk *w, const struct prb_operation *op)
{
	struct content content = get(w, op->p1);

	if (content.kind != TIME || op->p2 < AFFINITY_NUMERIC)
		set_kind(w, op->p1, OTHER);
}

static void put_text(struct walk *w, const struct prb_operation *op)
{
	set(w, op->p2, (struct content){.kind = TEXT, .text = op});
}

/* The value of an aggregate so far, and in the end (which stays where it is). */
static void end_aggregate(struct walk *w, const struct prb_operation *op)
{
	int number = is_any(op->name, " AggValue ") ? op->p3 : op->p1;

	set(w, number, time_argument(op->detail) < 0 ? (struct content){} : get(w, op->p1));
}

static const struct rule {
	const char *names;
	void (*follow)(struct walk *w, const struct prb_operation *op);
	int output; /* without `follow`: the parameter that is a register, which becomes */
	enum kind kind;
} rules[] = {
	{" VOpen OpenEphemeral OpenAutoindex OpenPseudo SorterOpen OpenDup OpenRead OpenWrite ",
	 open_cursor},
	{" MakeRecord ", make_record},
	{" IdxInsert Insert SorterInsert ", insert},
	{" SorterData RowData ", take_row},
	{" Column ", take_column},
	{" VColumn ", take_virtual},
	{" Found NotFound NoConflict SeekGE SeekGT SeekLE SeekLT IdxGE IdxGT IdxLE IdxLT ",
	 look_up},
	{" Eq Ne Lt Le Gt Ge ", compare},
	{" Copy SCopy Move ", copy},
	{" String8 ", put_text},
	{" Null ", put_null},
	{" Integer Int64 Real ", NULL, 2, NUMBER},
	{" Add Subtract ", add},
	{" AggFinal AggValue ", end_aggregate},
	{" Function PureFunc AggStep AggStep1 ", call},
	{" Cast ", cast},
	{" SoftNull AddImm Gosub InitCoroutine MemMax ", NULL, 1, OTHER},
	{" Blob String Variable Rowid Not BitNot Sequence NewRowid Count IntCopy IdxRowid "
	 "IsTrue Param ZeroOrNull OffsetLimit BeginSubrtn ",
	 NULL, 2, OTHER},
	{" Multiply Divide Remainder Concat And Or BitAnd BitOr ShiftLeft ShiftRight IfNullRow "
	 "Offset RowSetRead ",
	 NULL, 3, OTHER},
};

static void follow(struct walk *w, size_t at)
{
	const struct prb_operation *op = &w->program->list.items[at];
	const int parameters[] = {0, op->p1, op->p2, op->p3};

	w->now = at;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(rules); i++) {
		const struct rule *rule = &rules[i];

		if (!is_any(op->name, rule->names))
			continue;
		if (rule->follow)
			rule->follow(w, op);
		else
			set_kind(w, parameters[rule->output], rule->kind);
		return;
	}
}

static void walk_once(struct walk *w)
{
	/* Constants are made at the end, where the first operation leads, and used before. */
	size_t count = w->program->list.count;
	size_t init = PRB_MIN((size_t)PRB_MAX(w->program->list.items[0].p2, 1), count);

	memset(w->registers, 0, w->count * sizeof(*w->registers));
	for (size_t i = init; i < count; i++)
		follow(w, i);
	for (size_t i = 1; i < init; i++)
		follow(w, i);
}

/* Room for all registers and cursors that the program names. */
static struct prb_error *make_room(struct walk *w)
{
	const struct prb_operation *op;
	int largest = 0;

	prb_vec_each (op, &w->program->list)
		largest = PRB_MAX(largest, PRB_MAX(op->p1, PRB_MAX(op->p2, op->p3)));
	w->count = (size_t)PRB_MIN(largest, MAX_NUMBER - 1) + 1;
	w->registers = calloc(w->count, sizeof(*w->registers));
	w->cursors = calloc(w->count, sizeof(*w->cursors));
	if (!w->registers || !w->cursors)
		return prb_error_nomem();
	for (size_t i = 0; i < w->count; i++)
		w->cursors[i] = (struct cursor){.alias = NO_CURSOR, .record = NO_RECORD};
	return NULL;
}

struct prb_error *prb_time_walk(const struct prb_operations *program, struct prb_time_mistake *ret)
{
	__attribute__((cleanup(walk_guard))) struct walk w = {.program = program};

	*ret = (struct prb_time_mistake){};
	if (!program->list.count)
		return NULL;
	PRB_TRY(make_room(&w));
	walk_once(&w);
	w.last = true;
	walk_once(&w);
	*ret = w.mistake;
	return w.failed ? prb_error_nomem() : NULL;
}

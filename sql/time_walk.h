/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Following times and texts through the program that SQLite makes of a statement. Private to
 * sql: time_check.c reads the program and says what is wrong.
 *
 * Registers and the columns of tables in memory (sorters, lists, subqueries, indexes) are followed
 * in the order in which the program is written, twice: what is put into a table may be read by
 * operations that stand before. Whatever else is done with a value makes it neither a time nor a
 * text: what is not understood is never a complaint.
 */
#ifndef PRB_SQL_TIME_WALK_H
#define PRB_SQL_TIME_WALK_H

#include <stddef.h>

#include "dwarf/base/error.h"
#include "dwarf/base/vec.h"
#include "sql/table.h"
#include "sql/vtab_private.h"

struct prb_operation {
	/** Between blanks, to be looked for in lists: " Le "; and p4, unless it is a text: " max(1)
	 * ", " 2 ". */
	char name[20], detail[40];
	int p1, p2, p3, p5;
	char *text;		/**< of String8 */
	bool number;		/**< … which reads as one */
	struct prb_vtab *table; /**< of VOpen */
};

struct prb_operations {
	PRB_VEC(struct prb_operation) list;
};

/** A time that is compared with a text, or only with what looks like a number. */
struct prb_time_mistake {
	const struct prb_column *time; /**< NULL: there is none */
	const struct prb_operation *text;
};

/** Finds the first mistake. */
struct prb_error *prb_time_walk(const struct prb_operations *program,
				struct prb_time_mistake *ret) PRB_MUST_CHECK;

#endif

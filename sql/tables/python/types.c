/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "values/heap/heap.h"
#include "sql/tables/shared/interpreters.h"
#include "sql/spec/table.h"

enum { TYPE, OBJECTS, BYTES, REFERENCES, ADDRESS, INTERPRETER, ERROR };

static const struct prb_column columns[] = {
	[TYPE] = {"type", PRB_COLUMN_TEXT, "Name of the type, with its module"},
	[OBJECTS] = {"objects", PRB_COLUMN_INTEGER, "How many objects of it there are"},
	[BYTES] = {"bytes", PRB_COLUMN_INTEGER,
		   "Their own memory, without what they point to (tables of dicts, items of lists)",
		   "bytes"},
	[REFERENCES] = {"refs", PRB_COLUMN_INTEGER, "Sum of their reference counts"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Where the type lies in memory: its id()"},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER, "Id of the interpreter",
			 .flags = PRB_COLUMN_KEY},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why objects may be missing or be counted twice"},
	{},
};

static struct prb_error *put(struct prb_scan *scan, const struct prb_interpreter *i,
			     const struct prb_heap_types *types)
{
	const struct prb_heap_type *type;

	/* While a process runs, the column says so of what may change at any time. */
	if (types->doubt && (!types->list.count || !prb_instant_target(scan->instant)->live))
		prb_scan_note(scan, "python.types: %s", types->doubt);
	prb_vec_each (type, &types->list) {
		PRB_TRY(prb_scan_row(scan));
		prb_put_text(scan, TYPE, type->name);
		prb_put_integer(scan, OBJECTS, (int64_t)type->count);
		prb_put_integer(scan, BYTES, (int64_t)type->bytes);
		prb_put_integer(scan, REFERENCES, (int64_t)type->references);
		prb_put_integer(scan, ADDRESS, (int64_t)type->type);
		prb_put_integer(scan, INTERPRETER, i->state.id);
		prb_put_text(scan, ERROR, types->doubt);
	}
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_interpreters *interpreters;
	const struct prb_interpreter *i;

	PRB_TRY(prb_interpreters_read(scan, &interpreters));
	prb_vec_each (i, &interpreters->list) {
		struct prb_heap_types types;

		if (!prb_interpreter_wanted(scan, INTERPRETER, i))
			continue;
		PRB_TRY(prb_heap_types_read(i->py, prb_interpreter_bulk(scan, i), i->state.address,
					    &types));
		struct prb_error *err = put(scan, i, &types);
		prb_heap_types_deinit(&types);
		PRB_TRY(err);
	}
	return NULL;
}

const struct prb_table prb_table_python_types = {
	.schema = "python",
	.name = "types",
	.doc = "Types of the objects that the garbage collector knows, with sums over them",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 500,
	.scan = scan,
};

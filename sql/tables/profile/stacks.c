/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/recordings.h"

enum { STACK, DEPTH, KIND, FUNC, QUALNAME, FILE_NAME, MODULE, LINE, FIRST_LINE };

static const struct prb_column columns[] = {
	[STACK] = {"stack", PRB_COLUMN_INTEGER, "Which stack, as in profile.samples",
		   .flags = PRB_COLUMN_KEY},
	[DEPTH] = {"depth", PRB_COLUMN_INTEGER, "0 is the innermost frame"},
	[KIND] = {"kind", PRB_COLUMN_TEXT,
		  "python, native, or note for what is no function: <not in Python>"},
	[FUNC] = {"func", PRB_COLUMN_TEXT, "Name of the function"},
	[QUALNAME] = {"qualname", PRB_COLUMN_TEXT, "Its qualified name: Class.method"},
	[FILE_NAME] = {"file", PRB_COLUMN_TEXT, "Source file"},
	[MODULE] = {"module", PRB_COLUMN_TEXT,
		    "Of native functions: the ELF file that they are in"},
	[LINE] = {"lineno", PRB_COLUMN_INTEGER, "Line that ran"},
	[FIRST_LINE] = {"first_line", PRB_COLUMN_INTEGER, "Line of the definition"},
	{},
};

static struct prb_error *put_stack(struct prb_scan *scan, const struct prb_tree *tree,
				   uint32_t stack)
{
	uint32_t at = stack;

	for (int64_t depth = 0; at; depth++, at = tree->stacks.items[at].parent) {
		const struct prb_tree_function *f = prb_tree_function_of(tree, at);
		int32_t line = tree->frames.items[tree->stacks.items[at].frame].line;

		PRB_TRY(prb_scan_row(scan));
		prb_put_integer(scan, STACK, stack);
		prb_put_integer(scan, DEPTH, depth);
		prb_put_static(scan, KIND, prb_function_kind_name(f->kind));
		prb_put_static(scan, FUNC, prb_recorded_func(f));
		prb_put_static(scan, QUALNAME, f->name);
		prb_put_static(scan, FILE_NAME, f->file);
		prb_put_static(scan, MODULE, f->module);
		if (f->file && line > 0)
			prb_put_integer(scan, LINE, line);
		if (f->file && f->first_line > 0)
			prb_put_integer(scan, FIRST_LINE, f->first_line);
	}
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_tree *tree;
	struct prb_load *load;
	int64_t only;

	PRB_TRY(prb_scan_recording(scan, &load));
	tree = prb_load_about(load)->tree;
	if (prb_scan_key_integer(scan, STACK, &only))
		return only > 0 && only < (int64_t)tree->stacks.count
			       ? put_stack(scan, tree, (uint32_t)only)
			       : NULL;
	while (++scan->position < tree->stacks.count) {
		PRB_TRY(put_stack(scan, tree, (uint32_t)scan->position));
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
	}
	return NULL;
}

const struct prb_table prb_table_profile_stacks = {
	.schema = "profile",
	.name = "stacks",
	.doc = "Frames of the stacks of a recording, a row for each",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 20000,
	.scan = scan,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions and lines of a recording, with what they weigh. */
#include "base/cleanup.h"
#include "sql/tables/shared/recordings.h"

enum {
	FUNC,
	QUALNAME,
	KIND,
	FILE_NAME,
	MODULE,
	LINE,
	SELF_CPU,
	TOTAL_CPU,
	SELF_WALL,
	TOTAL_WALL,
	SAMPLES,
};

#define COLUMNS(line_name, line_doc)                                                               \
	{                                                                                          \
		[FUNC] = {"func", PRB_COLUMN_TEXT, "Name of the function"},                        \
		[QUALNAME] = {"qualname", PRB_COLUMN_TEXT, "Its qualified name: Class.method"},    \
		[KIND] = {"kind", PRB_COLUMN_TEXT,                                                 \
			  "python, native, or note for what is no function: <not in Python>"},     \
		[FILE_NAME] = {"file", PRB_COLUMN_TEXT, "Source file"},                            \
		[MODULE] = {"module", PRB_COLUMN_TEXT,                                             \
			    "Of native functions: the ELF file that they are in"},                 \
		[LINE] = {line_name, PRB_COLUMN_INTEGER, line_doc},                                \
		[SELF_CPU] = {"self_cpu_ms", PRB_COLUMN_REAL, "Time on a processor in itself",     \
			      "ms"},                                                               \
		[TOTAL_CPU] = {"total_cpu_ms", PRB_COLUMN_REAL,                                    \
			       "The same with all that it called; a recursion counts once", "ms"}, \
		[SELF_WALL] = {"self_wall_ms", PRB_COLUMN_REAL,                                    \
			       "Time that passed in itself, of all threads", "ms"},                \
		[TOTAL_WALL] = {"total_wall_ms", PRB_COLUMN_REAL,                                  \
				"The same with all that it called", "ms"},                         \
		[SAMPLES] = {"samples", PRB_COLUMN_INTEGER, "Samples in which it was innermost"},  \
		{},                                                                                \
	}

static const struct prb_column function_columns[] = COLUMNS("first_line", "Line of its definition");
static const struct prb_column line_columns[] = COLUMNS("lineno", "Line that ran");

static struct prb_error *put_rows(struct prb_scan *scan, const struct prb_recording *recording,
				  const struct prb_recorded_rows *rows, bool lines)
{
	const struct prb_recorded_row *row;

	prb_vec_each (row, &rows->list) {
		const struct prb_tree_function *f =
			&recording->tree->functions.items[row->function];
		int32_t line = lines ? row->line : f->first_line;

		PRB_TRY(prb_scan_row(scan));
		prb_put_static(scan, FUNC, prb_recorded_func(f));
		prb_put_static(scan, QUALNAME, f->name);
		prb_put_static(scan, KIND, prb_function_kind_name(f->kind));
		prb_put_static(scan, FILE_NAME, f->file);
		prb_put_static(scan, MODULE, f->module);
		if (f->file && line > 0)
			prb_put_integer(scan, LINE, line);
		prb_put_real(scan, SELF_CPU, prb_milliseconds(row->self[PRB_WEIGHT_CPU]));
		prb_put_real(scan, TOTAL_CPU, prb_milliseconds(row->total[PRB_WEIGHT_CPU]));
		prb_put_real(scan, SELF_WALL, prb_milliseconds(row->self[PRB_WEIGHT_WALL]));
		prb_put_real(scan, TOTAL_WALL, prb_milliseconds(row->total[PRB_WEIGHT_WALL]));
		prb_put_integer(scan, SAMPLES, (int64_t)row->samples);
	}
	return NULL;
}

static struct prb_error *scan_rows(struct prb_scan *scan, bool lines)
{
	const struct prb_recording *recording;
	struct prb_recorded_rows rows = {};
	struct prb_error *err;

	PRB_TRY(prb_scan_recording_runs(scan, &recording));
	err = prb_recorded_rows_make(recording, lines, &rows);
	if (!err)
		err = put_rows(scan, recording, &rows, lines);
	prb_vec_free(&rows.list);
	return err;
}

static struct prb_error *scan_functions(struct prb_scan *scan)
{
	return scan_rows(scan, false);
}

static struct prb_error *scan_lines(struct prb_scan *scan)
{
	return scan_rows(scan, true);
}

const struct prb_table prb_table_profile_functions = {
	.schema = "profile",
	.name = "functions",
	.doc = "Functions of a recording, with the time they took",
	.columns = function_columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 1000,
	.scan = scan_functions,
};

const struct prb_table prb_table_profile_lines = {
	.schema = "profile",
	.name = "lines",
	.doc = "Lines of the functions of a recording, with the time they took",
	.columns = line_columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 3000,
	.scan = scan_lines,
};

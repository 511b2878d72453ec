/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "values/modules.h"
#include "sql/tables/shared/interpreters.h"
#include "sql/spec/table.h"

enum { NAME, FILE_, VERSION, KIND, PACKAGE, NAMES, TYPE, ADDRESS, INTERPRETER };

static const struct prb_column columns[] = {
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name in sys.modules"},
	[FILE_] = {"file", PRB_COLUMN_TEXT, "Its __file__; NULL if it has none"},
	[VERSION] = {"version", PRB_COLUMN_TEXT, "Its __version__, if that is a str"},
	[KIND] =
		{"kind", PRB_COLUMN_TEXT,
		 "builtin, frozen, extension, source, bytecode, namespace, zip; NULL if its loader "
		 "is not Python's own"},
	[PACKAGE] = {"package", PRB_COLUMN_TEXT, "Package that its relative imports start from"},
	[NAMES] = {"names", PRB_COLUMN_INTEGER, "How many names it has; NULL if it is no module"},
	[TYPE] = {"type", PRB_COLUMN_TEXT,
		  "Type of the object: module, or what was put into sys.modules instead"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Where the object lies in memory: its id()"},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER,
			 "Id of the interpreter that imported it", .flags = PRB_COLUMN_KEY},
	{},
};

static void put(struct prb_scan *scan, const struct prb_interpreter *interpreter,
		const struct prb_import *import)
{
	prb_put_text(scan, NAME, import->name);
	prb_put_text(scan, FILE_, import->file);
	prb_put_text(scan, VERSION, import->version);
	prb_put_static(scan, KIND, prb_import_kind_name(import->kind));
	prb_put_text(scan, PACKAGE, import->package);
	prb_put_natural(scan, NAMES, import->names);
	prb_put_text(scan, TYPE, import->type);
	prb_put_integer(scan, ADDRESS, (int64_t)import->address);
	prb_put_integer(scan, INTERPRETER, interpreter->state.id);
}

static struct prb_error *put_all(struct prb_scan *scan, const struct prb_interpreter *interpreter,
				 const struct prb_imports *imports)
{
	const struct prb_import *import;

	prb_vec_each (import, &imports->list) {
		PRB_TRY(prb_scan_row(scan));
		put(scan, interpreter, import);
	}
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_interpreters *interpreters;
	const struct prb_interpreter *i;

	PRB_TRY(prb_interpreters_read(scan, &interpreters));
	prb_vec_each (i, &interpreters->list) {
		struct prb_imports imports;

		if (!prb_interpreter_wanted(scan, INTERPRETER, i))
			continue;
		PRB_TRY(prb_imports_read(i->py, i->mem, i->state.address, &imports));
		struct prb_error *err = put_all(scan, i, &imports);
		prb_imports_deinit(&imports);
		PRB_TRY(err);
	}
	return NULL;
}

const struct prb_table prb_table_python_modules = {
	.schema = "python",
	.name = "modules",
	.doc = "What was imported: sys.modules, in the order of import",
	.columns = columns,
	.rows = 300,
	.scan = scan,
};

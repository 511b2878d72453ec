/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"

enum { PATH, NAME, START, END, SIZE, BIAS, BUILD_ID, DELETED };

static const struct prb_column columns[] = {
	[PATH] = {"path", PRB_COLUMN_TEXT, "File, as the target names it; [vdso] for the kernel's"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Last part of the path"},
	[START] = {"start", PRB_COLUMN_INTEGER, "First address"},
	[END] = {"end", PRB_COLUMN_INTEGER,
		 "Address behind the last one; others may lie in between"},
	[SIZE] = {"size", PRB_COLUMN_INTEGER, "From start to end", "bytes"},
	[BIAS] = {"bias", PRB_COLUMN_INTEGER, "Address in memory less address in the file"},
	[BUILD_ID] = {"build_id", PRB_COLUMN_TEXT, "Build-id in hex; NULL if it has none"},
	[DELETED] = {"deleted", PRB_COLUMN_INTEGER, "1 if the file was removed or replaced since"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	struct prb_modules *modules;

	PRB_TRY(prb_instant_modules(scan->instant, &modules));
	for (; scan->position < modules->list.count; scan->position++) {
		struct prb_module *module = modules->list.items[scan->position];
		const char *slash = strrchr(module->path, '/');

		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		PRB_TRY(prb_scan_row(scan));
		if (*module->path) {
			prb_put_static(scan, PATH, module->path);
			prb_put_static(scan, NAME, slash ? slash + 1 : module->path);
		}
		prb_put_integer(scan, START, (int64_t)module->start);
		prb_put_integer(scan, END, (int64_t)module->end);
		prb_put_integer(scan, SIZE, (int64_t)(module->end - module->start));
		prb_put_integer(scan, BIAS, (int64_t)module->bias);
		prb_put_integer(scan, DELETED, module->deleted);
		if (!prb_scan_wants(scan, BUILD_ID))
			continue;
		const char *build_id = prb_module_build_id(module);
		if (*build_id)
			prb_put_static(scan, BUILD_ID, build_id);
	}
	return NULL;
}

const struct prb_table prb_table_native_modules = {
	.schema = "native",
	.name = "modules",
	.doc = "Executable and libraries that are loaded",
	.columns = columns,
	.rows = 40,
	.scan = scan,
};

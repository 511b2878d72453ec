/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/cleanup.h"
#include "dwarf/elf/elf.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"

enum { ADDRESS, SIZE, NAME, DEMANGLED, FULL_DEMANGLED, KIND, BINDING, OFFSET, MODULE, WANTED };

static const struct prb_column columns[] = {
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Address in memory"},
	[SIZE] = {"size", PRB_COLUMN_INTEGER, "Size; 0 if the file does not tell", "bytes"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name, as in the file", .flags = PRB_COLUMN_KEY},
	[DEMANGLED] = {"demangled", PRB_COLUMN_TEXT,
		       "Name in source form, shortened for C++; NULL if not mangled"},
	[FULL_DEMANGLED] = {"full_demangled", PRB_COLUMN_TEXT,
			    "Complete name in source form; NULL if not mangled"},
	[KIND] = {"kind", PRB_COLUMN_TEXT,
		  "function, ifunc (picks a function when it is loaded), object or label"},
	[BINDING] = {"binding", PRB_COLUMN_TEXT, "global, or local to its own source file"},
	[OFFSET] = {"offset", PRB_COLUMN_INTEGER, "Address in the file"},
	[MODULE] = {"module", PRB_COLUMN_TEXT, "File, as native.modules has its path",
		    .flags = PRB_COLUMN_KEY},
	[WANTED] = {"of", PRB_COLUMN_TEXT,
		    "Argument of the table: path of the module, or its last part",
		    .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN},
	{},
};

/** Where the scan is, from page to page. */
struct place {
	size_t module;
	struct prb_elf_symbol_place symbol;
	unsigned failed; /**< modules without symbols that can be read */
};

static bool is_wanted(const struct prb_scan *scan, const struct prb_module *module)
{
	const char *wanted, *slash = strrchr(module->path, '/');

	if (prb_scan_key_text(scan, MODULE, &wanted) && strcmp(wanted, module->path) != 0)
		return false;
	return !prb_scan_key_text(scan, WANTED, &wanted) || !strcmp(wanted, module->path) ||
	       (slash && !strcmp(wanted, slash + 1));
}

static struct prb_error *put_demangled(struct prb_scan *scan, const char *symbol)
{
	prb_auto_free char *full = prb_demangle(symbol), *brief = NULL;

	if (!full)
		return NULL;
	PRB_TRY(prb_short_name(full, &brief));
	prb_put_text(scan, DEMANGLED, brief ? brief : full);
	prb_put_text(scan, FULL_DEMANGLED, full);
	return NULL;
}

static struct prb_error *put(struct prb_scan *scan, const struct prb_module *module,
			     const struct prb_elf_symbol *symbol)
{
	const char *wanted;

	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, ADDRESS, (int64_t)(symbol->address + module->bias));
	prb_put_integer(scan, SIZE, (int64_t)symbol->size);
	prb_put_static(scan, NAME, symbol->name);
	prb_put_static(scan, KIND,
		       symbol->ifunc	  ? "ifunc"
		       : symbol->function ? "function"
		       : symbol->object	  ? "object"
					  : "label");
	prb_put_static(scan, BINDING, symbol->local ? "local" : "global");
	prb_put_integer(scan, OFFSET, (int64_t)symbol->address);
	prb_put_static(scan, MODULE, module->path);
	if (prb_scan_key_text(scan, WANTED, &wanted))
		prb_put_text(scan, WANTED, wanted);
	if (prb_scan_wants(scan, DEMANGLED) || prb_scan_wants(scan, FULL_DEMANGLED))
		return put_demangled(scan, symbol->name);
	return NULL;
}

/** Gives rows until the module ends or the page is full. */
static struct prb_error *module_rows(struct prb_scan *scan, struct prb_module *module,
				     struct prb_elf *elf, struct place *place)
{
	struct prb_elf_symbol symbol;
	const char *name;
	bool named = prb_scan_key_text(scan, NAME, &name);

	while (!prb_scan_full(scan)) {
		if (!prb_elf_symbol_next(elf, &place->symbol, &symbol)) {
			place->symbol = (struct prb_elf_symbol_place){};
			place->module++;
			return NULL;
		}
		if (!named || !strcmp(name, symbol.name))
			PRB_TRY(put(scan, module, &symbol));
	}
	return NULL;
}

/**
 * False for files of data, such as locales, which a core has among the files that are mapped: what
 * the core leaves out may be code for all it says, but programs and libraries write to a part too.
 */
static bool is_written(const struct prb_scan *scan, const struct prb_module *module)
{
	const struct prb_map *map;

	prb_vec_each (map, &prb_instant_target(scan->instant)->maps.list)
		if (map->write && map->start < module->end && module->start < map->end)
			return true;
	return false;
}

/** Many files may be unavailable: the first is reported, and the number when all are known. */
static void note_failure(struct prb_scan *scan, struct place *place, const struct prb_error *err)
{
	if (!place->failed++)
		prb_scan_note(scan, "native.symbols: %s", err->message);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	struct place *place = scan->state;
	struct prb_modules *modules;
	struct prb_elf *elf;

	if (!place)
		place = scan->state = calloc(1, sizeof(*place));
	if (!place)
		return prb_error_nomem();
	PRB_TRY(prb_instant_modules(scan->instant, &modules));
	while (place->module < modules->list.count) {
		struct prb_module *module = modules->list.items[place->module];

		if (!is_wanted(scan, module)) {
			place->module++;
			continue;
		}
		prb_auto_error struct prb_error *err = prb_module_symbol_file(module, &elf);
		if (err) {
			if (err->code == PRB_ERROR_NOMEM)
				return prb_error_nomem();
			if (is_written(scan, module))
				note_failure(scan, place, err);
			place->module++;
			continue;
		}
		PRB_TRY(module_rows(scan, module, elf, place));
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
	}
	if (place->failed > 1)
		prb_scan_note(scan, "native.symbols: %u files are not available", place->failed);
	return NULL;
}

const struct prb_table prb_table_native_symbols = {
	.schema = "native",
	.name = "symbols",
	.doc = "Functions and variables of the loaded files; best asked for by name or module",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 100000,
	.scan = scan,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes the built-in layout table of one CPython build from its DWARF, or checks the table that
 * we have against it.
 *
 *     gen-layout FILE VERSION > python/layout/tables/VERSION.c
 *     gen-layout --check FILE VERSION
 *     gen-layout --asyncio FILE VERSION
 *
 * FILE is an interpreter, a libpython or a separate debug file; VERSION is like 3.12.1. Whether it
 * is a debug or free-threaded build is found out. See docs/howto/add-python-version.md.
 *
 * With --asyncio, FILE holds the extension module _asyncio (which some interpreters have built
 * in), and what is written is its row of python/layout/tables/asyncio.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/asyncio/layout.h"
#include "python/layout/layout.h"
#include "dwarf/elf/elf.h"
#include "dwarf/types/types.h"

enum { STATUS_OK, STATUS_FAILED, STATUS_USAGE };

static int32_t *value_of(struct prb_layout *layout, const struct prb_layout_field *field)
{
	return (int32_t *)((char *)layout + field->place);
}

static struct prb_error *parse_version(const char *text, struct prb_layout *layout)
{
	unsigned major, minor, micro;
	char more;

	if (sscanf(text, "%u.%u.%u%c", &major, &minor, &micro, &more) != 3 || major > 255 ||
	    minor > 255 || micro > 254)
		return prb_error_create(PRB_ERROR_USAGE, "'%s' is not a version like 3.12.1", text);
	layout->version = (uint16_t)(major << 8 | minor);
	layout->micro = (uint8_t)micro;
	return NULL;
}

static void elf_guard(struct prb_elf **elf)
{
	prb_elf_close(*elf);
}

static struct prb_error *open_elf(const char *path, struct prb_elf **ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return prb_error_os(errno, "cannot open %s", path);
	return prb_elf_open(fd, path, ret);
}

/* Symbols that only one kind of build has. */
static struct prb_error *has_symbol(struct prb_elf *elf, const char *name, bool *ret)
{
	struct prb_elf_symbol symbol;
	struct prb_error *err = prb_elf_symbol(elf, name, &symbol);

	*ret = !err;
	prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
	return err;
}

/*
 * Every unit describes only the types it uses. What ceval.c does not, the others are asked for, in
 * this order; a type is the same in all of them.
 */
static const char *const units[] = {
	"ceval.c",     "object.c",     "unicodeobject.c", "longobject.c",    "dictobject.c",
	"setobject.c", "typeobject.c", "funcobject.c",	  "_threadmodule.c", "gcmodule.c",
};

static struct prb_error *query_unit(struct prb_elf *elf, const char *unit, const char *const *paths,
				    int32_t *values, unsigned count)
{
	prb_auto_free struct prb_type_query *queries = calloc(count, sizeof(*queries));
	prb_auto_free unsigned *places = calloc(count, sizeof(*places));
	unsigned asked = 0;

	if (!queries || !places)
		return prb_error_nomem();
	for (unsigned i = 0; i < count; i++) {
		if (values[i] != PRB_ABSENT)
			continue;
		queries[asked].path = paths[i];
		places[asked++] = i;
	}
	PRB_TRY(prb_types_query(elf, unit, queries, asked));
	for (unsigned i = 0; i < asked; i++)
		if (queries[i].found)
			values[places[i]] = (int32_t)queries[i].value;
	return NULL;
}

static struct prb_error *read_layout(const char *path, struct prb_layout *layout)
{
	__attribute__((cleanup(elf_guard))) struct prb_elf *elf = NULL;
	unsigned count = prb_layout_field_count;
	prb_auto_free const char **paths = calloc(count + 1, sizeof(*paths));
	prb_auto_free int32_t *values = calloc(count + 1, sizeof(*values));

	if (!paths || !values)
		return prb_error_nomem();
	for (unsigned i = 0; i < count; i++)
		paths[i] = prb_layout_fields[i].path;
	paths[count] = "_object.ob_tid";
	for (unsigned i = 0; i <= count; i++)
		values[i] = PRB_ABSENT;

	PRB_TRY(open_elf(path, &elf));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(units); i++) {
		struct prb_error *err = query_unit(elf, units[i], paths, values, count + 1);

		if (i > 0)
			prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
		PRB_TRY(err);
	}
	for (unsigned i = 0; i < count; i++)
		*value_of(layout, &prb_layout_fields[i]) = values[i];
	layout->source = PRB_LAYOUT_TABLE;
	layout->free_threaded = values[count] != PRB_ABSENT;
	return has_symbol(elf, "_Py_NegativeRefcount", &layout->debug_build);
}

static void print_layout(struct prb_layout *layout)
{
	unsigned major = layout->version >> 8, minor = layout->version & 0xff;
	const char *free_threaded = layout->free_threaded ? "_free_threaded" : "";
	const char *debug = layout->debug_build ? "_debug" : "";

	printf("/* SPDX-License-Identifier: GPL-3.0-or-later */\n"
	       "/* Written by tests/tools/gen-layout.c from the DWARF of CPython %u.%u.%u. */\n"
	       "#include \"python/layout/tables.h\"\n\n"
	       "const struct prb_layout prb_layout_%u_%u%s%s = {\n"
	       "\tPRB_LAYOUT_NO_FIELDS,\n"
	       "\t.version = 0x%04x,\n"
	       "\t.micro = %u,\n"
	       "\t.free_threaded = %s,\n"
	       "\t.debug_build = %s,\n",
	       major, minor, layout->micro, major, minor, free_threaded, debug, layout->version,
	       layout->micro, layout->free_threaded ? "true" : "false",
	       layout->debug_build ? "true" : "false");
	for (unsigned i = 0; i < prb_layout_field_count; i++) {
		int32_t value = *value_of(layout, &prb_layout_fields[i]);

		if (value != PRB_ABSENT)
			printf("\t.%s = %d,\n", prb_layout_fields[i].name, value);
	}
	printf("};\n");
}

static struct prb_error *check_layout(struct prb_layout *layout)
{
	const struct prb_layout *table =
		prb_layout_table(layout->version, layout->free_threaded, layout->debug_build);
	unsigned differences = 0;

	if (!table)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no table for that build");

	struct prb_layout ours = *table;
	for (unsigned i = 0; i < prb_layout_field_count; i++) {
		const struct prb_layout_field *field = &prb_layout_fields[i];
		int32_t in_table = *value_of(&ours, field), in_dwarf = *value_of(layout, field);

		if (in_table == in_dwarf)
			continue;
		printf("%s: %d in the table, %d in DWARF\n", field->name, in_table, in_dwarf);
		differences++;
	}
	if (differences)
		return prb_error_create(PRB_ERROR_FAILED, "%u fields differ", differences);
	return NULL;
}

static struct prb_error *write_asyncio(const char *path, const struct prb_layout *layout)
{
	__attribute__((cleanup(elf_guard))) struct prb_elf *elf = NULL;
	unsigned count = prb_asyncio_field_count;
	prb_auto_free const char **paths = calloc(count + 1, sizeof(*paths));
	prb_auto_free int32_t *values = calloc(count + 1, sizeof(*values));

	if (!paths || !values)
		return prb_error_nomem();
	for (unsigned i = 0; i < count; i++)
		paths[i] = prb_asyncio_fields[i].path;
	paths[count] = "_object.ob_tid";
	for (unsigned i = 0; i <= count; i++)
		values[i] = PRB_ABSENT;
	PRB_TRY(open_elf(path, &elf));
	PRB_TRY(query_unit(elf, prb_asyncio_unit, paths, values, count + 1));
	printf("\t/* %u.%u.%u */\n\t{\n\t\tNO_FIELDS,\n\t\t.version = 0x%04x,\n\t\t.free_threaded "
	       "= %s,\n",
	       layout->version >> 8, layout->version & 0xff, layout->micro, layout->version,
	       values[count] != PRB_ABSENT ? "true" : "false");
	for (unsigned i = 0; i < count; i++)
		if (values[i] != PRB_ABSENT)
			printf("\t\t.%s = %d,\n", prb_asyncio_fields[i].name, values[i]);
	printf("\t},\n");
	return NULL;
}

int main(int argc, char **argv)
{
	bool check = argc == 4 && !strcmp(argv[1], "--check");
	bool asyncio = argc == 4 && !strcmp(argv[1], "--asyncio");
	int first = 1 + (check || asyncio);
	struct prb_layout layout = {};

	if (argc != first + 2) {
		fprintf(stderr, "usage: gen-layout [--check | --asyncio] FILE VERSION\n");
		return STATUS_USAGE;
	}

	prb_auto_error struct prb_error *err = parse_version(argv[first + 1], &layout);
	if (!err && asyncio)
		err = write_asyncio(argv[first], &layout);
	else if (!err)
		err = read_layout(argv[first], &layout);
	if (!err && check)
		err = check_layout(&layout);
	else if (!err && !asyncio)
		print_layout(&layout);
	if (!err)
		return STATUS_OK;
	fprintf(stderr, "gen-layout: %s\n", err->message);
	return err->code == PRB_ERROR_USAGE ? STATUS_USAGE : STATUS_FAILED;
}

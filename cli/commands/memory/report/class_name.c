/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The class of C++ objects by the table of virtual functions that they begin with. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/memory/report/memory.h"
#include "dwarf/elf/module.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"
#include "target/mem/mem.h"

enum { NAME_MOST = 1000 };

static const char described[] = "typeinfo name for ";

/*
 * As the Itanium C++ ABI has it: before the functions of a table are the distance to the object's
 * begin, which is 0 here, and the address of the type's description, whose second word is that of
 * its name. Stripped libraries have these, too.
 */
static struct prb_error *read_name(const struct prb_memory *m, uint64_t table, struct prb_str *ret)
{
	struct {
		uint64_t distance, type;
	} head;
	struct {
		uint64_t table, name;
	} type;
	struct prb_mem *mem = m->target->mem;

	PRB_TRY(prb_mem_read(mem, table - sizeof(head), &head, sizeof(head)));
	if (head.distance || !prb_modules_find(m->modules, head.type))
		return NULL;
	PRB_TRY(prb_mem_read(mem, head.type, &type, sizeof(type)));
	if (!prb_modules_find(m->modules, type.table) || !prb_modules_find(m->modules, type.name))
		return NULL;
	return prb_mem_read_cstr(mem, type.name, NAME_MOST, ret);
}

struct prb_error *prb_memory_class_name(const struct prb_memory *m, uint64_t table, char **ret)
{
	prb_auto_str struct prb_str name = {}, symbol = {};
	prb_auto_free char *readable = NULL, *brief = NULL;
	const char *at;

	*ret = NULL;
	/* Bad data and unreadable memory mean that it is no such table. */
	PRB_TRY(prb_error_tolerate(read_name(m, table, &name), NULL));
	at = prb_str_text(&name);
	at += *at == '*'; /* of a type that only one file knows */
	if (!isalnum((unsigned char)*at))
		return NULL;
	prb_str_printf(&symbol, "_ZTS%s", at);
	if (symbol.failed)
		return prb_error_nomem();
	readable = prb_demangle(prb_str_text(&symbol));
	if (!readable || strncmp(readable, described, strlen(described)) != 0)
		return NULL;
	PRB_TRY(prb_cxx_short_name(readable + strlen(described), &brief));
	*ret = strdup(brief ? brief : readable + strlen(described));
	return *ret ? NULL : prb_error_nomem();
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The symbols of one ELF file: which tables it has, and in which order they are asked. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dwarf/elf/elf_internal.h"
#include "dwarf/elf/inflate.h"

/** Reads the table in the first section of @p type; it stays empty if there is none. */
static void load_table(const struct prb_elf *elf, uint32_t type, struct prb_symbol_table *table)
{
	GElf_Shdr symbols, strings;

	if (!prb_elf_section_of_type(elf, type, &symbols) ||
	    !prb_elf_section_header(elf, symbols.sh_link, &strings) ||
	    strings.sh_type != SHT_STRTAB)
		return;
	const void *entries = prb_elf_bytes(elf, symbols.sh_offset, symbols.sh_size);
	const void *names = prb_elf_bytes(elf, strings.sh_offset, strings.sh_size);
	if (entries && names)
		prb_symbol_table_set(table, entries, symbols.sh_size, names, strings.sh_size);
}

static void load_symtab(struct prb_elf *elf)
{
	if (!elf->tried_symtab)
		load_table(elf, SHT_SYMTAB, &elf->symtab);
	elf->tried_symtab = true;
}

static struct prb_error *read_mapped(void *context, uint64_t address, void *buffer, size_t length)
{
	const void *bytes = prb_elf_bytes_at(context, address, length);

	if (!bytes)
		return prb_error_fault(address, length);
	memcpy(buffer, bytes, length);
	return NULL;
}

/** Where the dynamic section lies. A separate debug file has a header for it, but no content. */
static bool find_dynamic(const struct prb_elf *elf, uint64_t *address, uint64_t *size)
{
	GElf_Shdr section;

	if (elf->section_count > 1) {
		if (!prb_elf_section_of_type(elf, SHT_DYNAMIC, &section))
			return false;
		*address = section.sh_addr;
		*size = section.sh_size;
		return true;
	}
	for (size_t i = 0; i < elf->segment_count; i++)
		if (elf->segments[i].p_type == PT_DYNAMIC) {
			*address = elf->segments[i].p_vaddr;
			*size = elf->segments[i].p_filesz;
			return true;
		}
	return false;
}

static void load_dynamic(struct prb_elf *elf)
{
	struct prb_dynamic_source source = {.read = read_mapped, .context = elf};
	prb_auto_error struct prb_error *err = NULL;
	uint64_t address, size;

	if (elf->tried_dynamic)
		return;
	elf->tried_dynamic = true;
	if (!find_dynamic(elf, &address, &size))
		return;
	err = prb_dynamic_init(&elf->dynamic, source, address, size, 0);
	elf->has_dynamic = !err;
	if (err)
		prb_log("elf", 1, "%s: %s", elf->name, err->message);
}

/** Opens the small ELF file with the names of static functions that Fedora and others embed. */
static struct prb_error *open_mini(struct prb_elf *elf)
{
	uint64_t size, inflated_size;
	const void *data;
	void *inflated;

	if (!prb_elf_has_section(elf, ".gnu_debugdata"))
		return NULL;
	PRB_TRY(prb_elf_section(elf, ".gnu_debugdata", NULL, &size, &data));
	PRB_TRY(prb_inflate_xz(data, size, &inflated, &inflated_size));
	return prb_elf_open_memory(inflated, inflated_size, elf->name, &elf->mini);
}

static void load_mini(struct prb_elf *elf)
{
	prb_auto_error struct prb_error *err = NULL;

	if (elf->tried_mini)
		return;
	elf->tried_mini = true;
	err = open_mini(elf);
	if (err)
		prb_log("elf", 1, "%s: .gnu_debugdata: %s", elf->name, err->message);
	if (elf->mini)
		load_symtab(elf->mini);
}

static void fill(const Elf64_Sym *symbol, const char *name, struct prb_elf_symbol *ret)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	*ret = (struct prb_elf_symbol){
		.name = name,
		.address = symbol->st_value,
		.size = symbol->st_size,
		.function = type == STT_FUNC || type == STT_GNU_IFUNC,
		.ifunc = type == STT_GNU_IFUNC,
		.object = type == STT_OBJECT,
		.local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL,
	};
}

bool prb_elf_exported_symbol(struct prb_elf *elf, const char *name, struct prb_elf_symbol *ret)
{
	prb_auto_error struct prb_error *err = NULL;
	Elf64_Sym symbol;
	uint64_t at;
	bool found;

	load_dynamic(elf);
	if (!elf->has_dynamic)
		return false;
	err = prb_dynamic_symbol(&elf->dynamic, name, &symbol, &found);
	if (err)
		prb_log("elf", 1, "%s: %s", elf->name, err->message);
	if (err || !found)
		return false;
	if (!prb_add(elf->dynamic.strings, symbol.st_name, &at))
		return false;
	const char *its_name = prb_elf_bytes_at(elf, at, strlen(name) + 1);
	if (its_name)
		fill(&symbol, its_name, ret);
	return its_name;
}

static bool find_in_table(const struct prb_symbol_table *table, const char *name,
			  struct prb_elf_symbol *ret)
{
	Elf64_Sym symbol;

	if (!prb_symbol_table_find(table, name, &symbol))
		return false;
	fill(&symbol, prb_symbol_name(table, &symbol), ret);
	return true;
}

struct prb_error *prb_elf_symbol(struct prb_elf *elf, const char *name, struct prb_elf_symbol *ret)
{
	if (prb_elf_exported_symbol(elf, name, ret))
		return NULL;
	load_symtab(elf);
	if (find_in_table(&elf->symtab, name, ret))
		return NULL;
	if (!elf->symtab.count)
		load_mini(elf);
	if (elf->mini && find_in_table(&elf->mini->symtab, name, ret))
		return NULL;
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s: no symbol %s", elf->name, name);
}

/** The dynamic symbols as a table: by its section, else by the hash tables. */
static void load_dynsym(struct prb_elf *elf)
{
	prb_auto_error struct prb_error *err = NULL;
	const struct prb_dynamic *dynamic = &elf->dynamic;
	size_t count;

	load_table(elf, SHT_DYNSYM, &elf->dynsym);
	if (elf->dynsym.count)
		return;
	load_dynamic(elf);
	if (!elf->has_dynamic)
		return;
	err = prb_dynamic_count(dynamic, &count);
	if (err) {
		prb_log("elf", 1, "%s: %s", elf->name, err->message);
		return;
	}
	const void *entries = prb_elf_bytes_at(elf, dynamic->symbols, count * sizeof(Elf64_Sym));
	const void *names = prb_elf_bytes_at(elf, dynamic->strings, dynamic->strings_size);
	if (entries && names)
		prb_symbol_table_set(&elf->dynsym, entries, count * sizeof(Elf64_Sym), names,
				     dynamic->strings_size);
}

static bool code_range(const void *context, uint64_t address, uint64_t *start, uint64_t *end)
{
	return prb_elf_code_range(context, address, start, end);
}

/** Indexes `.symtab`, which holds all there is, or else what is left of it. */
static struct prb_error *build_index(struct prb_elf *elf)
{
	struct prb_symbol_index *index = &elf->index;

	load_symtab(elf);
	if (elf->symtab.count) {
		PRB_TRY(prb_symbol_index_add(index, &elf->symtab, code_range, elf));
	} else {
		load_dynsym(elf);
		PRB_TRY(prb_symbol_index_add(index, &elf->dynsym, code_range, elf));
		load_mini(elf);
		if (elf->mini)
			PRB_TRY(prb_symbol_index_add(index, &elf->mini->symtab, code_range, elf));
	}
	return prb_symbol_index_sort(index, code_range, elf);
}

struct prb_error *prb_elf_symbol_at(struct prb_elf *elf, uint64_t address,
				    struct prb_elf_symbol *ret)
{
	Elf64_Sym symbol;
	const char *name;

	if (!elf->tried_index) {
		elf->tried_index = true;
		PRB_TRY(build_index(elf));
	}
	if (!prb_symbol_index_find(&elf->index, address, &symbol, &name))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s: no function at %#llx", elf->name,
					(unsigned long long)address);
	fill(&symbol, name, ret);
	return NULL;
}

/** The tables one after the other; NULL behind the last one. */
static const struct prb_symbol_table *symbol_table(struct prb_elf *elf, unsigned number)
{
	load_symtab(elf);
	if (elf->symtab.count)
		return number == 0 ? &elf->symtab : NULL;
	if (number == 0) {
		if (!elf->dynsym.count)
			load_dynsym(elf);
		return &elf->dynsym;
	}
	load_mini(elf);
	return number == 1 && elf->mini ? &elf->mini->symtab : NULL;
}

static bool is_between(const struct prb_elf_symbol_place *place, const Elf64_Sym *symbol)
{
	return !place->to ||
	       (symbol->st_value < place->to && symbol->st_value + symbol->st_size > place->from);
}

bool prb_elf_symbol_next(struct prb_elf *elf, struct prb_elf_symbol_place *place,
			 struct prb_elf_symbol *ret)
{
	const struct prb_symbol_table *table;

	for (; (table = symbol_table(elf, place->table)); place->table++, place->index = 0) {
		while (place->index < table->count) {
			Elf64_Sym symbol = prb_symbol_get(table, place->index++);

			if (!is_between(place, &symbol) || !prb_symbol_is_defined(&symbol))
				continue;
			fill(&symbol, prb_symbol_name(table, &symbol), ret);
			return true;
		}
	}
	return false;
}

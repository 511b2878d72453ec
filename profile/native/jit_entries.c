/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/native/jit_entries.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"
#include "target/mem/mem.h"

enum {
	MOST_ENTRIES = 8192, /* of a list, looked at each time */
	MOST_IMAGE = 8 << 20,
	MOST_READ = 128 << 20,	/* bytes of all images */
	MOST_SYMBOLS = 1 << 16, /* of an image */
};

/* As GDB's manual has them, for 64 bits. */
struct descriptor {
	uint32_t version, action;
	uint64_t relevant, first;
};
struct entry {
	uint64_t next, previous, image, size;
};

void prb_jit_entries_init(struct prb_jit_entries *jit)
{
	*jit = (struct prb_jit_entries){};
	prb_perf_map_init(&jit->names);
}

void prb_jit_entries_deinit(struct prb_jit_entries *jit)
{
	prb_perf_map_deinit(&jit->names);
	prb_number_map_deinit(&jit->known);
	prb_vec_free(&jit->lists);
}

/* Section @index of an image, its header checked to lie within it; false if there is none. */
static bool section(const uint8_t *image, size_t size, const Elf64_Ehdr *header, size_t index,
		    Elf64_Shdr *ret)
{
	uint64_t end;

	if (index >= header->e_shnum || header->e_shentsize != sizeof(*ret) ||
	    !prb_add(header->e_shoff, (index + 1) * sizeof(*ret), &end) || end > size)
		return false;
	memcpy(ret, image + header->e_shoff + index * sizeof(*ret), sizeof(*ret));
	return true;
}

static bool has_content(const Elf64_Shdr *s, size_t size)
{
	uint64_t end;

	return s->sh_type != SHT_NOBITS && prb_add(s->sh_offset, s->sh_size, &end) && end <= size;
}

static struct prb_error *take_symbol(struct prb_jit_entries *jit, uint64_t address, uint64_t size,
				     const char *name)
{
	prb_auto_free char *readable = prb_demangle(name), *brief = NULL;

	PRB_TRY(prb_short_name(readable ? readable : name, &brief));
	name = brief ? brief : readable ? readable : name;
	return prb_perf_map_add(&jit->names, address, size, name, strlen(name));
}

/* Values of a relocatable file count from its section, whose address the loader has put in. */
static struct prb_error *take_symbols(struct prb_jit_entries *jit, const uint8_t *image,
				      size_t size, const Elf64_Ehdr *header,
				      const Elf64_Shdr *table, const Elf64_Shdr *strings)
{
	size_t count = PRB_MIN(table->sh_size / sizeof(Elf64_Sym), (uint64_t)MOST_SYMBOLS);

	for (size_t i = 0; i < count; i++) {
		Elf64_Shdr at = {};
		Elf64_Sym symbol;
		uint64_t address;
		const char *name;

		memcpy(&symbol, image + table->sh_offset + i * sizeof(symbol), sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !symbol.st_size ||
		    symbol.st_name >= strings->sh_size ||
		    !section(image, size, header, symbol.st_shndx, &at))
			continue;
		name = (const char *)image + strings->sh_offset + symbol.st_name;
		if (!memchr(name, '\0', strings->sh_size - symbol.st_name) ||
		    !prb_add(header->e_type == ET_REL ? at.sh_addr : 0, symbol.st_value, &address))
			continue;
		PRB_TRY(take_symbol(jit, address, symbol.st_size, name));
	}
	return NULL;
}

struct prb_error *prb_jit_entries_take(struct prb_jit_entries *jit, const uint8_t *image,
				       size_t size)
{
	Elf64_Shdr table, strings;
	Elf64_Ehdr header;

	if (size < sizeof(header))
		return NULL;
	memcpy(&header, image, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB)
		return NULL;
	for (size_t i = 1; section(image, size, &header, i, &table); i++)
		if (table.sh_type == SHT_SYMTAB && has_content(&table, size) &&
		    section(image, size, &header, table.sh_link, &strings) &&
		    has_content(&strings, size))
			PRB_TRY(take_symbols(jit, image, size, &header, &table, &strings));
	return NULL;
}

/* Only lack of memory is one: what cannot be read has no names. */
static struct prb_error *forgive(struct prb_error *err)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_log("profile", 1, "%s", err->message);
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *read_image(struct prb_jit_entries *jit, struct prb_mem *mem,
				    const struct entry *entry)
{
	prb_auto_free uint8_t *image = NULL;
	uint64_t key = entry->image ^ entry->size << 40;
	struct prb_error *err;
	size_t seen;

	if (!entry->image || entry->size > MOST_IMAGE || jit->read + entry->size > MOST_READ ||
	    prb_number_map_get(&jit->known, key, &seen))
		return NULL;
	image = malloc(entry->size + 1);
	if (!image || !prb_number_map_put(&jit->known, key, 1))
		return prb_error_nomem();
	jit->read += entry->size;
	err = prb_mem_read(mem, entry->image, image, entry->size);
	return forgive(err ? err : prb_jit_entries_take(jit, image, entry->size));
}

static struct prb_error *read_list(struct prb_jit_entries *jit, struct prb_mem *mem, uint64_t at)
{
	struct descriptor descriptor;
	struct entry entry;
	struct prb_error *err = prb_mem_read(mem, at, &descriptor, sizeof(descriptor));

	if (err || descriptor.version != 1)
		return forgive(err);
	at = descriptor.first;
	for (unsigned i = 0; at && i < MOST_ENTRIES; i++, at = entry.next) {
		err = prb_mem_read(mem, at, &entry, sizeof(entry));
		if (err)
			return forgive(err);
		PRB_TRY(read_image(jit, mem, &entry));
	}
	return NULL;
}

/* In modules that were not looked at before. */
static struct prb_error *find_lists(struct prb_jit_entries *jit, struct prb_modules *modules)
{
	struct prb_module *const *module;

	if (jit->modules == modules->list.count)
		return NULL;
	jit->lists.count = 0;
	prb_vec_each (module, &modules->list) {
		uint64_t address, *slot;
		struct prb_error *err =
			prb_module_symbol(*module, "__jit_debug_descriptor", &address, NULL);

		if (err) {
			PRB_TRY(forgive(err));
			continue;
		}
		slot = prb_vec_push(&jit->lists);
		if (!slot)
			return prb_error_nomem();
		*slot = address;
	}
	jit->modules = modules->list.count;
	return NULL;
}

struct prb_error *prb_jit_entries_update(struct prb_jit_entries *jit, struct prb_modules *modules)
{
	const uint64_t *list;
	size_t before = jit->names.symbols.count;

	if (!jit->names.path)
		jit->names.path = strdup("JIT");
	if (!jit->names.path)
		return prb_error_nomem();
	PRB_TRY(find_lists(jit, modules));
	prb_vec_each (list, &jit->lists)
		PRB_TRY(read_list(jit, modules->target->mem, *list));
	if (jit->names.symbols.count > before)
		prb_perf_map_sort(&jit->names);
	return NULL;
}

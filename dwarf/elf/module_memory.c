/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A module whose file cannot be had: its dynamic symbols, read from the target's memory. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dwarf/elf/dynamic.h"
#include "dwarf/elf/module_internal.h"
#include "dwarf/elf/symbols.h"

#define MAX_TABLE (256ULL << 20) /* bytes of symbols or names that are copied */

struct prb_module_memory {
	struct prb_dynamic dynamic;
	bool tried_index;
	void *entries, *strings;
	struct prb_symbol_table table;
	struct prb_symbol_index index;
};

static struct prb_error *read_biased(void *context, uint64_t address, void *buffer, size_t length)
{
	const struct prb_module *module = context;

	return prb_mem_read(module->target->mem, address + module->bias, buffer, length);
}

static struct prb_error *create(struct prb_module *module)
{
	struct prb_dynamic_source source = {.read = read_biased, .context = module};
	prb_auto_free struct prb_module_memory *memory = NULL;

	if (!module->dynamic.size)
		return NULL;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return prb_error_nomem();
	PRB_TRY(prb_dynamic_init(&memory->dynamic, source, module->dynamic.address - module->bias,
				 module->dynamic.size, module->bias));
	module->memory = prb_steal(&memory);
	return NULL;
}

/** Makes sure of module->memory. */
static struct prb_error *load(struct prb_module *module)
{
	if (!module->tried_memory) {
		module->tried_memory = true;
		PRB_TRY(create(module));
	}
	if (!module->memory)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s: no dynamic section in memory",
					module->path);
	return NULL;
}

void prb_module_memory_free(struct prb_module_memory *memory)
{
	if (!memory)
		return;
	prb_symbol_index_deinit(&memory->index);
	free(memory->entries);
	free(memory->strings);
	free(memory);
}

struct prb_error *prb_module_memory_symbol(struct prb_module *module, const char *name,
					   uint64_t *address, uint64_t *size)
{
	Elf64_Sym symbol;
	bool found;

	PRB_TRY(load(module));
	PRB_TRY(prb_error_prefix(
		prb_dynamic_symbol(&module->memory->dynamic, name, &symbol, &found), "%s",
		module->path));
	if (!found)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s: no dynamic symbol %s",
					module->path, name);
	*address = symbol.st_value + module->bias;
	*size = symbol.st_size;
	return NULL;
}

static struct prb_error *copy(struct prb_module *module, uint64_t address, uint64_t size,
			      void **ret)
{
	prb_auto_free void *buffer = NULL;

	if (size > MAX_TABLE)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s: a symbol table of %llu bytes",
					module->path, (unsigned long long)size);
	buffer = malloc(size + !size);
	if (!buffer)
		return prb_error_nomem();
	PRB_TRY(read_biased(module, address, buffer, size));
	*ret = prb_steal(&buffer);
	return NULL;
}

static bool code_range(const void *context, uint64_t address, uint64_t *start, uint64_t *end)
{
	const struct prb_module *module = context;
	const struct prb_map *map = prb_maps_find(&module->target->maps, address + module->bias);

	if (!map || !map->exec)
		return false;
	*start = map->start - module->bias;
	*end = map->end - module->bias;
	return true;
}

static struct prb_error *build_index(struct prb_module *module)
{
	struct prb_module_memory *memory = module->memory;
	const struct prb_dynamic *dynamic = &memory->dynamic;
	size_t count;

	PRB_TRY(prb_dynamic_count(dynamic, &count));
	PRB_TRY(copy(module, dynamic->symbols, count * sizeof(Elf64_Sym), &memory->entries));
	PRB_TRY(copy(module, dynamic->strings, dynamic->strings_size, &memory->strings));
	prb_symbol_table_set(&memory->table, memory->entries, count * sizeof(Elf64_Sym),
			     memory->strings, dynamic->strings_size);
	PRB_TRY(prb_symbol_index_add(&memory->index, &memory->table, code_range, module));
	return prb_symbol_index_sort(&memory->index, code_range, module);
}

struct prb_error *prb_module_memory_symbol_at(struct prb_module *module, uint64_t address,
					      struct prb_str *ret, uint64_t *start)
{
	Elf64_Sym symbol;
	const char *name;

	PRB_TRY(load(module));
	if (!module->memory->tried_index) {
		module->memory->tried_index = true;
		PRB_TRY(build_index(module));
	}
	if (!prb_symbol_index_find(&module->memory->index, address - module->bias, &symbol, &name))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s: no function at %#llx",
					module->path, (unsigned long long)address);
	prb_str_puts(ret, name);
	*start = symbol.st_value + module->bias;
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dwarf/elf/debugfile.h"
#include "dwarf/elf/module_internal.h"

enum {
	MAX_NOTES = 4096,  /* bytes of notes that are searched for the build-id */
	MAX_VDSO = 1 << 20 /* bytes */
};

void prb_module_free(struct prb_module *module)
{
	if (!module)
		return;
	prb_module_memory_free(module->memory);
	if (module->debug != module->elf)
		prb_elf_close(module->debug);
	prb_elf_close(module->elf);
	free(module->elf_reason);
	free(module->path);
	free(module);
}

static int by_start(const void *a, const void *b)
{
	const struct prb_module *const *one = a, *const *other = b;

	return (*one)->start < (*other)->start ? -1 : (*one)->start > (*other)->start;
}

void prb_module_add_range(struct prb_module *module, uint64_t start, uint64_t end)
{
	struct prb_module_range *last =
		module->range_count ? &module->ranges[module->range_count - 1] : NULL;

	if (last && start >= last->start &&
	    (start <= last->end || module->range_count == PRB_MODULE_RANGES_MAX))
		last->end = PRB_MAX(last->end, end);
	else if (module->range_count < PRB_MODULE_RANGES_MAX)
		module->ranges[module->range_count++] =
			(struct prb_module_range){.start = start, .end = end};
}

bool prb_module_covers(const struct prb_module *module, uint64_t address)
{
	for (size_t i = 0; i < module->range_count; i++)
		if (address >= module->ranges[i].start && address < module->ranges[i].end)
			return true;
	return false;
}

static int by_range_start(const void *a, const void *b)
{
	const struct prb_module_range *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

/** Sorts modules, and the ranges of all of them. */
static struct prb_error *order(struct prb_modules *modules)
{
	struct prb_module **slot;

	prb_vec_each (slot, &modules->list) {
		for (size_t i = 0; i < (*slot)->range_count; i++) {
			struct prb_module_range *range = prb_vec_push(&modules->order);

			if (!range)
				return prb_error_nomem();
			*range = (*slot)->ranges[i];
			range->module = *slot;
		}
	}
	if (!modules->order.count)
		return NULL;
	qsort(modules->list.items, modules->list.count, sizeof(modules->list.items[0]), by_start);
	qsort(modules->order.items, modules->order.count, sizeof(modules->order.items[0]),
	      by_range_start);
	/* Headers may claim more than there is room for. */
	for (size_t i = 1; i < modules->order.count; i++) {
		struct prb_module_range *before = &modules->order.items[i - 1];

		before->end = PRB_MIN(before->end, before[1].start);
	}
	return NULL;
}

struct prb_error *prb_modules_create(struct prb_target *target, struct prb_modules **ret)
{
	return prb_modules_create_some(target, NULL, NULL, ret);
}

struct prb_error *prb_modules_create_some(struct prb_target *target, prb_module_wanted *wanted,
					  const void *context, struct prb_modules **ret)
{
	struct prb_modules *modules;
	struct prb_error *err;
	bool recalled;

	PRB_TRY(prb_target_check_memory(target));
	modules = calloc(1, sizeof(*modules));
	if (!modules)
		return prb_error_nomem();
	modules->target = target;
	err = prb_modules_recall(modules, &recalled);
	if (!err && !recalled)
		err = prb_modules_discover(modules, wanted, context);
	if (!err)
		err = order(modules);
	if (err) {
		prb_modules_destroy(modules);
		return err;
	}
	*ret = modules;
	return NULL;
}

void prb_modules_destroy(struct prb_modules *modules)
{
	struct prb_module **module;

	if (!modules)
		return;
	prb_vec_each (module, &modules->list)
		prb_module_free(*module);
	prb_vec_free(&modules->list);
	prb_vec_free(&modules->order);
	free(modules);
}

struct prb_module *prb_modules_find(struct prb_modules *modules, uint64_t address)
{
	size_t low = 0, high = modules->order.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct prb_module_range *range = &modules->order.items[middle];

		if (address < range->start)
			high = middle;
		else if (address >= range->end)
			low = middle + 1;
		else
			return range->module;
	}
	return NULL;
}

/** Reads the build-id from the notes in memory; stays "" if there is none. */
static void read_build_id(struct prb_module *module)
{
	for (size_t i = 0; i < PRB_MODULE_NOTES_MAX && module->notes[i].size; i++) {
		prb_auto_error struct prb_error *err = NULL;
		uint8_t notes[MAX_NOTES];
		size_t size = PRB_MIN(module->notes[i].size, (uint64_t)sizeof(notes));

		err = prb_mem_read(module->target->mem, module->notes[i].address, notes, size);
		if (!err && prb_build_id_from_notes(notes, size, module->build_id))
			return;
	}
}

/** The build-id in memory. */
static const char *build_id_in_memory(struct prb_module *module)
{
	if (!module->tried_build_id)
		read_build_id(module);
	module->tried_build_id = true;
	return module->build_id;
}

/** Opens what is mapped at the module's header. */
static struct prb_error *open_file(struct prb_module *module, struct prb_elf **ret)
{
	struct prb_target *target = module->target;
	const struct prb_map *map = prb_maps_find(&target->maps, module->header);
	int fd;

	if (!map || strcmp(map->path, module->path) != 0)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it is not mapped any more");
	if (!strcmp(map->path, "[vdso]")) {
		size_t size = PRB_MIN(map->end - map->start, (uint64_t)MAX_VDSO);
		prb_auto_free void *data = malloc(size);

		if (!data)
			return prb_error_nomem();
		PRB_TRY(prb_mem_read(target->mem, map->start, data, size));
		return prb_elf_open_memory(prb_steal(&data), size, module->path, ret);
	}
	if (!map->inode)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it is not mapped from a file");
	PRB_TRY(prb_target_open_map(target, map, &fd));
	return prb_elf_open(fd, module->path, ret);
}

static struct prb_error *open_elf(struct prb_module *module)
{
	const char *build_id = build_id_in_memory(module), *in_file;
	struct prb_elf *elf;

	PRB_TRY(open_file(module, &elf));
	in_file = prb_elf_build_id(elf);
	if (*build_id && strcmp(build_id, in_file) != 0) {
		prb_elf_close(elf);
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"the file has another build-id than what is mapped");
	}
	memcpy(module->build_id, in_file, strlen(in_file) + 1);
	module->elf = elf;
	return NULL;
}

struct prb_error *prb_module_elf(struct prb_module *module, struct prb_elf **ret)
{
	if (!module->tried_elf && !module->elf) {
		prb_auto_error struct prb_error *err = open_elf(module);

		if (err && err->code == PRB_ERROR_NOMEM)
			return prb_steal(&err);
		module->tried_elf = true;
		if (err) {
			prb_log("elf", 1, "%s: no file: %s", module->path, err->message);
			module->elf_reason = strdup(err->message);
		}
	}
	if (!module->elf)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s: %s", module->path,
					module->elf_reason ? module->elf_reason : "no file");
	*ret = module->elf;
	return NULL;
}

const char *prb_module_build_id(struct prb_module *module)
{
	struct prb_error *err = NULL;
	struct prb_elf *elf;

	/* Where memory lacks it (a core without these pages), the file is read. */
	if (!*build_id_in_memory(module) && !module->notes[0].size && !module->tried_elf)
		err = prb_module_elf(module, &elf);
	prb_error_destroy(err);
	return module->build_id;
}

/** The file with debug information, or with symbols at least. */
static struct prb_error *load_debug(struct prb_module *module)
{
	prb_auto_error struct prb_error *err = NULL;
	struct prb_elf *elf;

	if (module->tried_debug)
		return NULL;
	PRB_TRY(prb_module_elf(module, &elf));
	if (prb_elf_has_section(elf, ".debug_info"))
		module->debug = elf;
	else
		err = prb_debugfile_open(module->target, elf, module->path, &module->debug);
	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	module->tried_debug = true;
	return NULL;
}

struct prb_error *prb_module_debug(struct prb_module *module, struct prb_elf **ret)
{
	PRB_TRY(load_debug(module));
	if (!module->debug || !prb_elf_has_section(module->debug, ".debug_info"))
		return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						       "%s has no debug information", module->path),
				      "install its debug package");
	*ret = module->debug;
	return NULL;
}

struct prb_error *prb_module_cache_id(struct prb_module *module, struct prb_str *ret)
{
	const char *build_id = prb_module_build_id(module);
	struct prb_elf *elf;
	struct prb_error *err = prb_module_elf(module, &elf);
	struct stat st;

	prb_str_puts(ret, build_id);
	if (!err && *build_id && !prb_elf_is_safe(elf) && !fstat(prb_elf_fd(elf), &st))
		prb_str_printf(ret, "-%llx-%llx-%llx-%lx-%llx", (unsigned long long)st.st_dev,
			       (unsigned long long)st.st_ino, (unsigned long long)st.st_ctim.tv_sec,
			       (unsigned long)st.st_ctim.tv_nsec, (unsigned long long)st.st_size);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND) || !err)
		return ret->failed ? prb_error_nomem() : NULL;
	return err;
}

bool prb_module_may_keep(const struct prb_module *module)
{
	return module->elf && prb_elf_fd(module->elf) >= 0 &&
	       (!module->debug || module->debug == module->elf || prb_elf_is_safe(module->debug));
}

/** A part that the program headers in memory locate. */
static const struct prb_module_part *part_by_name(const struct prb_module *module, const char *name)
{
	if (!strcmp(name, ".eh_frame_hdr") && module->unwind.size)
		return &module->unwind;
	if (!strcmp(name, ".dynamic") && module->dynamic.size)
		return &module->dynamic;
	return NULL;
}

struct prb_error *prb_module_section(struct prb_module *module, const char *name, uint64_t *address,
				     uint64_t *size)
{
	const struct prb_module_part *part = part_by_name(module, name);
	struct prb_module_part found;
	struct prb_elf *elf;

	if (part) {
		found = *part;
	} else {
		PRB_TRY(prb_module_elf(module, &elf));
		PRB_TRY(prb_elf_section(elf, name, &found.address, &found.size, NULL));
		if (!found.address)
			return prb_error_create(PRB_ERROR_NOT_FOUND, "%s: section %s is not loaded",
						module->path, name);
		found.address += module->bias;
	}
	if (address)
		*address = found.address;
	if (size)
		*size = found.size;
	return NULL;
}

/** Looks into the file, and where that has been stripped, into its debug file. */
static struct prb_error *find_symbol(struct prb_module *module, struct prb_elf *elf,
				     const char *name, struct prb_elf_symbol *ret)
{
	struct prb_error *err = prb_elf_symbol(elf, name, ret);

	if (!err || err->code != PRB_ERROR_NOT_FOUND || prb_elf_has_section(elf, ".symtab"))
		return err;
	prb_error_destroy(err);
	PRB_TRY(load_debug(module));
	return prb_elf_symbol(module->debug ? module->debug : elf, name, ret);
}

struct prb_error *prb_module_symbol_file(struct prb_module *module, struct prb_elf **ret)
{
	PRB_TRY(prb_module_elf(module, ret));
	if (prb_elf_has_section(*ret, ".symtab"))
		return NULL;
	PRB_TRY(load_debug(module));
	if (module->debug && prb_elf_has_section(module->debug, ".symtab"))
		*ret = module->debug;
	return NULL;
}

struct prb_error *prb_module_symbol(struct prb_module *module, const char *name, uint64_t *address,
				    uint64_t *size)
{
	struct prb_elf_symbol symbol;
	struct prb_elf *elf;
	uint64_t at, length;
	struct prb_error *err = prb_module_elf(module, &elf);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) {
		PRB_TRY(prb_module_memory_symbol(module, name, &at, &length));
	} else {
		PRB_TRY(err);
		PRB_TRY(find_symbol(module, elf, name, &symbol));
		at = symbol.address + module->bias;
		length = symbol.size;
	}
	if (address)
		*address = at;
	if (size)
		*size = length;
	return NULL;
}

struct prb_error *prb_module_exported_symbol(struct prb_module *module, const char *name,
					     uint64_t *address, uint64_t *size)
{
	struct prb_elf_symbol symbol;
	struct prb_elf *elf;
	struct prb_error *err = prb_module_elf(module, &elf);

	*address = *size = 0;
	if (!err) {
		if (prb_elf_exported_symbol(elf, name, &symbol)) {
			*address = symbol.address + module->bias;
			*size = symbol.size;
		}
		return NULL;
	}
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = prb_module_memory_symbol(module, name, address, size);
	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? NULL : err;
}

/** A stripped file knows only what it exports: its debug file is asked first. */
static struct prb_error *find_symbol_at(struct prb_module *module, struct prb_elf *elf,
					uint64_t address, struct prb_elf_symbol *ret)
{
	if (!prb_elf_has_section(elf, ".symtab")) {
		PRB_TRY(load_debug(module));
		if (module->debug && module->debug != elf) {
			struct prb_error *err = prb_elf_symbol_at(module->debug, address, ret);

			if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
				return err;
		}
	}
	return prb_elf_symbol_at(elf, address, ret);
}

struct prb_error *prb_module_symbol_at(struct prb_module *module, uint64_t address,
				       struct prb_str *ret, uint64_t *start)
{
	struct prb_elf_symbol symbol;
	struct prb_elf *elf;
	uint64_t at;
	struct prb_error *err = prb_module_elf(module, &elf);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) {
		PRB_TRY(prb_module_memory_symbol_at(module, address, ret, &at));
	} else {
		PRB_TRY(err);
		PRB_TRY(find_symbol_at(module, elf, address - module->bias, &symbol));
		prb_str_puts(ret, symbol.name);
		at = symbol.address + module->bias;
	}
	if (start)
		*start = at;
	return ret->failed ? prb_error_nomem() : NULL;
}

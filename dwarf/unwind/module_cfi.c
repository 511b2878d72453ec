/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/unwind/module_cfi.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "dwarf/elf/elf.h"

/* libtorch_cpu has 220,000. */
enum { MAX_RANGES = 8 << 20 };

void prb_module_cfi_init(struct prb_module_cfi *cfi, struct prb_module *module)
{
	*cfi = (struct prb_module_cfi){.module = module};
}

void prb_module_cfi_deinit(struct prb_module_cfi *cfi)
{
	for (unsigned i = 0; i < cfi->count; i++)
		prb_vec_free(&cfi->tables[i].ranges);
}

static int by_start(const void *a, const void *b)
{
	const struct prb_cfi_range *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

/* Lists the FDEs of a section that has no search table. */
static struct prb_error *list_ranges(const struct prb_module *module,
				     const struct prb_cfi_memory *memory,
				     struct prb_cfi_table *table)
{
	uint64_t address = table->section.address;
	struct prb_cfi_fde fde = {};
	bool sorted = true;

	while (table->ranges.count < MAX_RANGES) {
		uint64_t last = table->ranges.count
					? table->ranges.items[table->ranges.count - 1].start
					: 0;

		if (prb_cfi_fde_next(&table->section, memory, &address, &fde) != PRB_CFI_OK)
			break;
		/* Code that the linker has dropped leaves entries at address zero. */
		if (fde.start < module->start || fde.end > module->end || fde.start >= fde.end)
			continue;

		struct prb_cfi_range *range = prb_vec_push(&table->ranges);
		if (!range)
			return prb_error_nomem();
		*range = (struct prb_cfi_range){fde.start, fde.end, fde.address};
		sorted = sorted && last <= fde.start;
	}
	if (!sorted)
		qsort(table->ranges.items, table->ranges.count, sizeof(*table->ranges.items),
		      by_start);
	return NULL;
}

/* `.eh_frame_hdr` and `.eh_frame` as they are mapped. */
static struct prb_error *open_memory(struct prb_module *module, const struct prb_cfi_memory *memory,
				     struct prb_cfi_table *table, bool *found)
{
	struct prb_cfi_section header = {};
	struct prb_error *err =
		prb_module_section(module, ".eh_frame_hdr", &header.address, &header.size);

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (err || header.address + header.size < header.address ||
	    prb_cfi_index_read(&header, memory, &table->index) != PRB_CFI_OK)
		return NULL;
	*found = true;
	table->section.address = module->start;
	table->section.size = module->end - module->start;
	if (table->index.count)
		return NULL;
	if (table->index.eh_frame < module->start || table->index.eh_frame >= module->end) {
		*found = false;
		return NULL;
	}
	table->section.address = table->index.eh_frame;
	table->section.size = module->end - table->index.eh_frame;
	return list_ranges(module, memory, table);
}

/* A section of a file with its bytes; false if the file has none. Only NOMEM is an error. */
static struct prb_error *open_section(struct prb_module *module, struct prb_elf *elf,
				      const char *name, struct prb_cfi_section *ret, bool *found)
{
	struct prb_error *err = prb_elf_section(elf, name, &ret->address, &ret->size, &ret->data);

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	*found = !err && ret->data && ret->size;
	prb_error_destroy(err);
	ret->address += module->bias;
	ret->bias = module->bias;
	if (*found && ret->address + ret->size < ret->address)
		*found = false;
	return NULL;
}

static struct prb_error *open_eh_frame(struct prb_module *module, struct prb_elf *elf,
				       const struct prb_cfi_memory *memory,
				       struct prb_cfi_table *table, bool *found)
{
	struct prb_cfi_section header = {};
	bool has_header;

	PRB_TRY(open_section(module, elf, ".eh_frame", &table->section, found));
	if (!*found)
		return NULL;
	PRB_TRY(open_section(module, elf, ".eh_frame_hdr", &header, &has_header));
	if (!has_header || prb_cfi_index_read(&header, memory, &table->index) != PRB_CFI_OK)
		table->index.count = 0;
	return table->index.count ? NULL : list_ranges(module, memory, table);
}

static struct prb_error *open_debug_frame(struct prb_module *module, struct prb_elf *elf,
					  const struct prb_cfi_memory *memory,
					  struct prb_cfi_table *table, bool *found)
{
	PRB_TRY(open_section(module, elf, ".debug_frame", &table->section, found));
	table->section.debug_frame = true;
	return *found ? list_ranges(module, memory, table) : NULL;
}

/* Opens what is not open yet of the sources; *found says whether it has any CFI. */
static struct prb_error *open_source(struct prb_module_cfi *cfi, unsigned source,
				     const struct prb_cfi_memory *memory,
				     struct prb_cfi_table *table, bool *found)
{
	struct prb_module *module = cfi->module;
	struct prb_elf *elf = NULL;
	struct prb_error *err;

	*found = false;
	if (cfi->file_first && source < 2)
		source = 1 - source;
	if (source == 0)
		return open_memory(module, memory, table, found);
	err = source == 3 ? prb_module_debug(module, &elf) : prb_module_elf(module, &elf);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (err || (source == 3 && elf == module->elf))
		return NULL;
	return source == 1 ? open_eh_frame(module, elf, memory, table, found)
			   : open_debug_frame(module, elf, memory, table, found);
}

static enum prb_cfi_status find_fde(const struct prb_cfi_table *table,
				    const struct prb_cfi_memory *memory, uint64_t pc,
				    uint64_t *address)
{
	size_t low = 0, high = table->ranges.count;

	if (table->index.count)
		return prb_cfi_index_find(&table->index, memory, pc, address);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->ranges.items[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || pc >= table->ranges.items[low - 1].end)
		return PRB_CFI_NOT_FOUND;
	*address = table->ranges.items[low - 1].fde;
	return PRB_CFI_OK;
}

/* The part wanted of the FDE that covers a pc: its row there, or just the FDE. */
struct wanted {
	const struct prb_cfi_memory *memory;
	uint64_t pc;
	uint16_t machine;
	struct prb_cfi_row *row; /* NULL: not wanted */
	struct prb_cfi_fde fde;
	const struct prb_cfi_section *section; /* which it came from */
};

static enum prb_cfi_status look_up(const struct prb_cfi_table *table, struct wanted *wanted)
{
	enum prb_cfi_status status;
	uint64_t address;

	wanted->fde = (struct prb_cfi_fde){};
	wanted->section = &table->section;
	status = find_fde(table, wanted->memory, wanted->pc, &address);
	if (status == PRB_CFI_OK)
		status = prb_cfi_fde_read(&table->section, wanted->memory, address, &wanted->fde);
	if (status == PRB_CFI_OK && wanted->row)
		return prb_cfi_row_at(&table->section, wanted->memory, &wanted->fde,
				      wanted->machine, wanted->pc, wanted->row);
	if (status == PRB_CFI_OK &&
	    (wanted->pc < wanted->fde.start || wanted->pc >= wanted->fde.end))
		return PRB_CFI_NOT_FOUND;
	return status;
}

/* Opens the next of the sources. */
static struct prb_error *open_next(struct prb_module_cfi *cfi, const struct prb_cfi_memory *memory)
{
	struct prb_cfi_table *table = &cfi->tables[cfi->count];
	bool found;

	*table = (struct prb_cfi_table){};
	struct prb_error *err = open_source(cfi, cfi->tried++, memory, table, &found);
	if (!found || err)
		prb_vec_free(&table->ranges);
	else
		cfi->count++;
	return err;
}

struct prb_error *prb_module_cfi_use_file(struct prb_module_cfi *cfi,
					  const struct prb_cfi_memory *memory)
{
	struct prb_elf *elf;

	if (cfi->tried)
		return NULL;
	struct prb_error *err = prb_module_elf(cfi->module, &elf);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	cfi->file_first = *prb_module_build_id(cfi->module);
	return cfi->file_first ? open_next(cfi, memory) : NULL;
}

static struct prb_error *look_up_all(struct prb_module_cfi *cfi, struct wanted *wanted,
				     enum prb_cfi_status *status)
{
	*status = PRB_CFI_NOT_FOUND;
	for (unsigned i = 0;; i++) {
		while (i == cfi->count && cfi->tried < PRB_CFI_SOURCES)
			PRB_TRY(open_next(cfi, wanted->memory));
		if (i == cfi->count)
			return NULL;

		enum prb_cfi_status answer = look_up(&cfi->tables[i], wanted);
		/* The first source with the code gives the reason why it cannot be used. */
		if (answer == PRB_CFI_OK || *status == PRB_CFI_NOT_FOUND)
			*status = answer;
		if (answer == PRB_CFI_OK)
			return NULL;
	}
}

struct prb_error *prb_module_cfi_row(struct prb_module_cfi *cfi,
				     const struct prb_cfi_memory *memory, uint16_t machine,
				     uint64_t pc, struct prb_cfi_row *row,
				     const struct prb_cfi_section **section,
				     enum prb_cfi_status *status)
{
	struct wanted wanted = {.memory = memory, .pc = pc, .machine = machine, .row = row};

	PRB_TRY(look_up_all(cfi, &wanted, status));
	*section = wanted.section;
	return NULL;
}

struct prb_error *prb_module_cfi_function(struct prb_module_cfi *cfi,
					  const struct prb_cfi_memory *memory, uint64_t pc,
					  uint64_t *start, uint64_t *end,
					  enum prb_cfi_status *status)
{
	struct wanted wanted = {.memory = memory, .pc = pc};

	PRB_TRY(look_up_all(cfi, &wanted, status));
	*start = wanted.fde.start;
	*end = wanted.fde.end;
	return NULL;
}

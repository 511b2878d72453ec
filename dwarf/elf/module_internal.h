/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the files behind module.h: discovery, and reading a module without its file.
 */
#ifndef PRB_DWARF_ELF_MODULE_INTERNAL_H
#define PRB_DWARF_ELF_MODULE_INTERNAL_H

#include "dwarf/elf/elf.h"
#include "dwarf/elf/module.h"

/** Fills modules->list, unsorted, with what is wanted (NULL: all). */
struct prb_error *prb_modules_discover(struct prb_modules *modules, prb_module_wanted *wanted,
				       const void *context) PRB_MUST_CHECK;

/** Fills modules->list from a snapshot; *ret is false if the target has none. */
struct prb_error *prb_modules_recall(struct prb_modules *modules, bool *ret) PRB_MUST_CHECK;

/**
 * Adds what lies from @p start to @p end to the module. Neighbours become one; when there are too
 * many for the table, what lies between two is taken for a part of the module.
 */
void prb_module_add_range(struct prb_module *module, uint64_t start, uint64_t end);

/** Does a segment of the module hold this address? */
bool prb_module_covers(const struct prb_module *module, uint64_t address);

void prb_module_free(struct prb_module *module);

/** Symbols of a module by what lies in the target's memory. As in module.h. */
struct prb_error *prb_module_memory_symbol(struct prb_module *module, const char *name,
					   uint64_t *address, uint64_t *size) PRB_MUST_CHECK;
struct prb_error *prb_module_memory_symbol_at(struct prb_module *module, uint64_t address,
					      struct prb_str *ret, uint64_t *start) PRB_MUST_CHECK;
void prb_module_memory_free(struct prb_module_memory *memory);

#endif

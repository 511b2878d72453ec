/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The modules of a target: which ELF files are mapped where, and what is in them.
 *
 * A module is found from the memory map (executable file mappings, the vdso, and anonymous or
 * deleted mappings that begin with an ELF header). Its file is opened through the target (its own
 * root, map_files, exe link), so that containers, chroots, deleted and replaced files work; where
 * no file can be had, what lies in memory is used (`.dynamic`, `.dynsym`, build-id note).
 *
 * Threading: one thread at a time. Modules live as long as the set that holds them.
 */
#ifndef PRB_ELF_MODULE_H
#define PRB_ELF_MODULE_H

#include <stdint.h>

#include "dwarf/base/error.h"
#include "dwarf/base/str.h"
#include "dwarf/base/vec.h"
#include "dwarf/target.h"

struct prb_elf; /* elf.h: an opened ELF file */

struct prb_module {
	struct prb_target *target; /**< borrowed */
	char *path;		   /**< as the target names it, "[vdso]" for the vdso */
	uint64_t start, end;	   /**< lowest and highest mapped address */
	uint64_t bias;		   /**< run-time address minus address in the file */
	char *build_id;		   /**< hex, or "" if it has none */
	bool deleted;

	/* The rest belongs to module.c. */
	struct prb_elf *elf, *debug;
	bool tried_elf, tried_debug;
	char *elf_reason; /**< why there is no file, or NULL */
};

struct prb_modules {
	struct prb_target *target;
	PRB_VEC(struct prb_module *) list; /**< sorted by start */
};

/** Finds the modules of @p target from its maps. */
struct prb_error *prb_modules_create(struct prb_target *target,
				     struct prb_modules **ret) PRB_MUST_CHECK;
void prb_modules_destroy(struct prb_modules *modules);

/** The module whose mapped range holds @p address, or NULL. */
struct prb_module *prb_modules_find(struct prb_modules *modules, uint64_t address);

/** The module's ELF file, opened when first asked for; PRB_ERROR_NOT_FOUND says why there is none.
 */
struct prb_error *prb_module_elf(struct prb_module *module, struct prb_elf **ret) PRB_MUST_CHECK;

/**
 * The file with its debug information: the ELF file itself when it has `.debug_info`, else the
 * separate file by build-id (/usr/lib/debug/.build-id of the target's root, then ours) or by
 * .gnu_debuglink (CRC checked). PRB_ERROR_NOT_FOUND if there is none.
 */
struct prb_error *prb_module_debug(struct prb_module *module, struct prb_elf **ret) PRB_MUST_CHECK;

/** Run-time address and size of a section by name. */
struct prb_error *prb_module_section(struct prb_module *module, const char *name, uint64_t *address,
				     uint64_t *size) PRB_MUST_CHECK;

/**
 * Run-time address and size of a symbol by exact name: `.symtab`, `.dynsym` (its hash table),
 * `.gnu_debugdata`, then the debug file; without a file, `.dynamic` in memory. PRB_ERROR_NOT_FOUND.
 */
struct prb_error *prb_module_symbol(struct prb_module *module, const char *name, uint64_t *address,
				    uint64_t *size) PRB_MUST_CHECK;

/**
 * Name of the function symbol that covers @p address, into @p ret (mangled, as in the file), with
 * the symbol's run-time start. PRB_ERROR_NOT_FOUND if none covers it.
 */
struct prb_error *prb_module_symbol_at(struct prb_module *module, uint64_t address,
				       struct prb_str *ret, uint64_t *start) PRB_MUST_CHECK;

#endif

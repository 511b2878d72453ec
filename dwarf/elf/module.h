/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The modules of a target: which ELF files are mapped where, and what is in them.
 *
 * A module is found from the memory map and the ELF headers in memory: executable file mappings,
 * the vdso, and anonymous or deleted mappings that begin with an ELF header. A file that is loaded
 * twice gives two modules; one that is merely mapped as data gives none. Finding them opens no
 * file. A module's file is opened when something needs it, through the target (its own root,
 * map_files, exe link), so that containers, chroots, deleted and replaced files work; where no
 * file can be had, what lies in memory is used (`.dynamic`, `.dynsym`, `.eh_frame_hdr`, build-id).
 *
 * Threading: one thread at a time. Modules live as long as the set that holds them.
 */
#ifndef PRB_DWARF_ELF_MODULE_H
#define PRB_DWARF_ELF_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "dwarf/elf/build_id.h"
#include "target/target.h"

struct prb_elf; /* elf.h: an opened ELF file */
struct prb_module_memory;

/** A part of a module that its program headers locate; run-time address. */
struct prb_module_part {
	uint64_t address, size; /**< size 0: it has none */
};

/** A range of the target's memory, from start to end, of one module. */
struct prb_module_range {
	uint64_t start, end;
	struct prb_module *module;
};

enum {
	PRB_MODULE_NOTES_MAX = 4,
	PRB_MODULE_RANGES_MAX = 8,
};

struct prb_module {
	struct prb_target *target; /**< borrowed */
	char *path;		   /**< as the target names it, "[vdso]" for the vdso, or "" */
	/** Of what its segments occupy, `.bss` included. There may be holes between them, and
	 * other modules in these. */
	uint64_t start, end;
	uint64_t bias; /**< run-time address minus address in the file */
	bool deleted;  /**< the file was removed or replaced since it was mapped */

	/* The rest belongs to dwarf/elf. */
	uint64_t header; /**< where its first page (or what there is of the file) is mapped */
	struct prb_module_range ranges[PRB_MODULE_RANGES_MAX]; /**< without the holes */
	size_t range_count;
	struct prb_module_part dynamic, unwind, notes[PRB_MODULE_NOTES_MAX];
	char build_id[PRB_BUILD_ID_TEXT_SIZE];
	struct prb_elf *elf, *debug;
	struct prb_module_memory *memory; /**< what was read from memory for want of a file */
	bool tried_build_id, tried_elf, tried_debug, tried_memory;
	char *elf_reason; /**< why there is no file, or NULL */
};

struct prb_modules {
	struct prb_target *target;
	PRB_VEC(struct prb_module *) list;	/**< sorted by start */
	PRB_VEC(struct prb_module_range) order; /**< sorted; they do not overlap */
};

/** Finds the modules of @p target from its maps. */
struct prb_error *prb_modules_create(struct prb_target *target,
				     struct prb_modules **ret) PRB_MUST_CHECK;

/** Says of the path of a mapping whether a module may be looked for there. */
typedef bool prb_module_wanted(const void *context, const char *path);

/** Reads only the wanted modules, where each header may be a network round trip. */
struct prb_error *prb_modules_create_some(struct prb_target *target, prb_module_wanted *wanted,
					  const void *context,
					  struct prb_modules **ret) PRB_MUST_CHECK;
void prb_modules_destroy(struct prb_modules *modules);

/** Notes the modules for the snapshot being recorded, if there is one. */
void prb_modules_remember(struct prb_modules *modules);

/** The module with a segment that holds @p address, or NULL. */
struct prb_module *prb_modules_find(struct prb_modules *modules, uint64_t address);

/** Hex build-id, "" if it has none. Read from memory when first asked for, without the file. */
const char *prb_module_build_id(struct prb_module *module);

/**
 * The module's ELF file, opened when first asked for; PRB_ERROR_NOT_FOUND says why there is none. A
 * file whose build-id is not the one in memory is none. The vdso's ELF has no descriptor.
 */
struct prb_error *prb_module_elf(struct prb_module *module, struct prb_elf **ret) PRB_MUST_CHECK;

/**
 * The file with its debug information: the ELF file itself when it has `.debug_info`, else the
 * separate file by build-id (/usr/lib/debug/.build-id of the target's root, then ours) or by
 * .gnu_debuglink (CRC checked). PRB_ERROR_NOT_FOUND if there is none.
 */
struct prb_error *prb_module_debug(struct prb_module *module, struct prb_elf **ret) PRB_MUST_CHECK;

/**
 * Appends the name under which the disk cache has what the module's file says: its build-id, or
 * nothing if it has none. A build-id is what a file says of itself. So where others can change the
 * file, the name also says which file it is, and since when it is as it is.
 */
struct prb_error *prb_module_cache_id(struct prb_module *module,
				      struct prb_str *ret) PRB_MUST_CHECK;

/**
 * True if what the files that were opened for the module say may be kept under that name. False if
 * there is no file, or others can change its separate debug file.
 */
bool prb_module_may_keep(const struct prb_module *module);

/** Whichever of the two files above has more symbols; errors as prb_module_elf(). */
struct prb_error *prb_module_symbol_file(struct prb_module *module,
					 struct prb_elf **ret) PRB_MUST_CHECK;

/**
 * Run-time address and size of a loaded section by name; either result may be NULL. `.eh_frame_hdr`
 * and `.dynamic` are found by the program headers in memory, without opening the file.
 */
struct prb_error *prb_module_section(struct prb_module *module, const char *name, uint64_t *address,
				     uint64_t *size) PRB_MUST_CHECK;

/**
 * Run-time address and size of a symbol by exact name (either result may be NULL): `.dynsym` (its
 * hash table), `.symtab`, `.gnu_debugdata`, and for a file without `.symtab` the debug file;
 * without a file, `.dynamic` in memory. PRB_ERROR_NOT_FOUND.
 */
struct prb_error *prb_module_symbol(struct prb_module *module, const char *name, uint64_t *address,
				    uint64_t *size) PRB_MUST_CHECK;

/**
 * As above, among its dynamic symbols alone, which is fast for missing names, too. No debug file is
 * opened; *address is 0 if there is none.
 */
struct prb_error *prb_module_exported_symbol(struct prb_module *module, const char *name,
					     uint64_t *address, uint64_t *size) PRB_MUST_CHECK;

/**
 * Name of the function symbol that covers @p address, appended to @p ret (mangled, as in the
 * file), with the symbol's run-time start (may be NULL). PRB_ERROR_NOT_FOUND if none covers it.
 */
struct prb_error *prb_module_symbol_at(struct prb_module *module, uint64_t address,
				       struct prb_str *ret, uint64_t *start) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file One ELF file, opened with libelf: sections, symbols, build-id. Addresses here are those in
 * the file; prb_module adds the load bias. The file is hostile: every offset and count is checked.
 *
 * Opening maps the file and reads nothing but its headers; tables are read when first asked for. A
 * file that others can change is not mapped but copied, as far as it is needed. Files without
 * section headers work as far as program headers locate their parts (build-id, dynamic symbols,
 * `.eh_frame_hdr`).
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_DWARF_ELF_ELF_H
#define PRB_DWARF_ELF_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

struct prb_elf;

/**
 * Opens @p fd, which it owns from now on, also on failure. @p name is its path, or for messages
 * only, if it has none.
 * PRB_ERROR_UNSUPPORTED for what is not a 64-bit little-endian ELF file.
 */
struct prb_error *prb_elf_open(int fd, const char *name, struct prb_elf **ret) PRB_MUST_CHECK;

/** Opens an ELF file that lies in our memory: @p data from malloc(), owned as @p fd is above. */
struct prb_error *prb_elf_open_memory(void *data, size_t size, const char *name,
				      struct prb_elf **ret) PRB_MUST_CHECK;
void prb_elf_close(struct prb_elf *elf);

/** The descriptor (owned by the object), for libdwarf and libbfd; -1 if it lies in memory only. */
int prb_elf_fd(const struct prb_elf *elf);
const char *prb_elf_name(const struct prb_elf *elf);

/** True for a file that only root and our user can change: what it says may be kept for others. */
bool prb_elf_is_safe(const struct prb_elf *elf);

/** Hex build-id, "" if none; owned by the object. */
const char *prb_elf_build_id(struct prb_elf *elf);

/** True if the section exists and has content. */
bool prb_elf_has_section(struct prb_elf *elf, const char *name);

/**
 * Address, size and (decompressed) content of a section; any of the results may be NULL.
 * Owned by the object. @p data is NULL for a section without content (`.bss`, or any that a
 * separate debug file has only the header of).
 */
struct prb_error *prb_elf_section(struct prb_elf *elf, const char *name, uint64_t *address,
				  uint64_t *size, const void **data) PRB_MUST_CHECK;

/**
 * Asks for memory for @p size bytes of debug information, until the file is closed. Of files that
 * are not safe all that are open at a time get 1 GiB together: a small or sparse file can claim to
 * hold any amount.
 */
struct prb_error *prb_elf_claim(struct prb_elf *elf, uint64_t size) PRB_MUST_CHECK;

/** The bytes that all sections of debug information hold, decompressed. */
uint64_t prb_elf_debug_size(struct prb_elf *elf);

struct prb_elf_symbol {
	const char *name; /**< owned by the object */
	uint64_t address, size;
	bool function; /**< code: FUNC, or ifunc */
	bool ifunc;    /**< `address` is the resolver that picks the function, not the function */
	bool object;   /**< data */
	bool local;    /**< known in its own file only */
};

/**
 * The defined symbol of this exact name: of `.dynsym` by its hash table (the default version where
 * there are several), else of `.symtab`, else of `.gnu_debugdata`. Global ones win over local
 * ones. Thread-local symbols have no address and are not found. PRB_ERROR_NOT_FOUND.
 */
struct prb_error *prb_elf_symbol(struct prb_elf *elf, const char *name,
				 struct prb_elf_symbol *ret) PRB_MUST_CHECK;

/**
 * As above, among its dynamic symbols alone, which is fast for missing names, too. False if there
 * is none, or they are broken.
 */
bool prb_elf_exported_symbol(struct prb_elf *elf, const char *name, struct prb_elf_symbol *ret);

/**
 * The symbol in an executable section that covers @p address; one without size covers up to the
 * next symbol. Of several, the innermost, then a function, then the most public and least
 * decorated name. PRB_ERROR_NOT_FOUND.
 */
struct prb_error *prb_elf_symbol_at(struct prb_elf *elf, uint64_t address,
				    struct prb_elf_symbol *ret) PRB_MUST_CHECK;

/** Address in the file's own terms of file offset @p offset, by the PT_LOAD segments. */
struct prb_error *prb_elf_offset_to_address(struct prb_elf *elf, uint64_t offset,
					    uint64_t *ret) PRB_MUST_CHECK;

/** A place in the symbols of a file; starts as {}, or with the addresses that are wanted. */
struct prb_elf_symbol_place {
	uint64_t from, to; /**< only symbols that overlap this range; to 0: all */
	unsigned table;
	size_t index;
};

/**
 * Gives the symbol at @p place, which goes on to the next one; false at the end. All of `.symtab`,
 * or, in a file without it, of `.dynsym` and `.gnu_debugdata`; only those with an address.
 */
bool prb_elf_symbol_next(struct prb_elf *elf, struct prb_elf_symbol_place *place,
			 struct prb_elf_symbol *ret);

#endif

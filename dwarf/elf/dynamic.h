/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The dynamic section: exact-name lookup through the hash tables that the dynamic linker
 * uses, in a file or straight in the memory of a target.
 */
#ifndef PRB_DWARF_ELF_DYNAMIC_H
#define PRB_DWARF_ELF_DYNAMIC_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** Where the bytes come from. Addresses are those in the file, without bias. */
struct prb_dynamic_source {
	/** Reads exactly @p length bytes; PRB_ERROR_FAULT if they are not all there. */
	struct prb_error *(*read)(void *context, uint64_t address, void *buffer, size_t length);
	void *context;
};

struct prb_dynamic {
	struct prb_dynamic_source source;
	uint64_t symbols, strings, strings_size;
	uint64_t gnu_hash, hash, versions; /**< 0 if there is none */
};

/**
 * Reads the dynamic section: @p size bytes at @p address. @p bias is subtracted from pointers that
 * the dynamic linker has relocated (0 for a file).
 */
struct prb_error *prb_dynamic_init(struct prb_dynamic *dynamic, struct prb_dynamic_source source,
				   uint64_t address, uint64_t size, uint64_t bias) PRB_MUST_CHECK;

/** Looks up a defined symbol, which may not be there. A default version wins over a hidden one. */
struct prb_error *prb_dynamic_symbol(const struct prb_dynamic *dynamic, const char *name,
				     Elf64_Sym *ret, bool *found) PRB_MUST_CHECK;

/** The number of entries of the symbol table, from the hash tables. */
struct prb_error *prb_dynamic_count(const struct prb_dynamic *dynamic, size_t *ret) PRB_MUST_CHECK;

#endif

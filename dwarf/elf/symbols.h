/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Symbol tables as they lie in a file, searched by name, and an index by address over them.
 */
#ifndef PRB_DWARF_ELF_SYMBOLS_H
#define PRB_DWARF_ELF_SYMBOLS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"

/** A table and its names; borrowed bytes, of any alignment. Starts as {}: an empty table. */
struct prb_symbol_table {
	const uint8_t *entries;
	size_t count;
	const char *strings; /**< ends in a NUL unless empty */
	uint64_t strings_size;
};

/** Sets a table from raw bytes, cut down to what is whole and terminated. */
void prb_symbol_table_set(struct prb_symbol_table *table, const void *entries, uint64_t size,
			  const void *strings, uint64_t strings_size);

static inline Elf64_Sym prb_symbol_get(const struct prb_symbol_table *table, size_t index)
{
	Elf64_Sym symbol;

	memcpy(&symbol, table->entries + index * sizeof(symbol), sizeof(symbol));
	return symbol;
}

/** The name, "" if it lies outside of the strings. */
const char *prb_symbol_name(const struct prb_symbol_table *table, const Elf64_Sym *symbol);

/** Does it name a place in the file? What is undefined, absolute or thread-local does not. */
bool prb_symbol_is_defined(const Elf64_Sym *symbol);

/** Finds a defined symbol by scanning the whole table; global ones win. False if there is none. */
bool prb_symbol_table_find(const struct prb_symbol_table *table, const char *name, Elf64_Sym *ret);

/** One function (or label in code) of the index; 24 bytes, as there are many. */
struct prb_symbol_entry {
	uint64_t address, end;
	uint32_t symbol; /**< number in its table */
	uint32_t table;	 /**< which of `tables` */
};

enum { PRB_SYMBOL_TABLES_MAX = 2 };

struct prb_symbol_index {
	const struct prb_symbol_table *tables[PRB_SYMBOL_TABLES_MAX];
	size_t table_count;
	PRB_VEC(struct prb_symbol_entry) list; /**< by address */
	uint64_t longest;		       /**< largest end - address among them */
};

/** Says in which executable range @p address lies. */
typedef bool prb_code_range(const void *context, uint64_t address, uint64_t *start, uint64_t *end);

/** Adds the code symbols of @p table, which must stay; then prb_symbol_index_sort(). */
struct prb_error *prb_symbol_index_add(struct prb_symbol_index *index,
				       const struct prb_symbol_table *table, prb_code_range *range,
				       const void *context) PRB_MUST_CHECK;
struct prb_error *prb_symbol_index_sort(struct prb_symbol_index *index, prb_code_range *range,
					const void *context) PRB_MUST_CHECK;
void prb_symbol_index_deinit(struct prb_symbol_index *index);

/** The best symbol that covers @p address; false if none does. */
bool prb_symbol_index_find(const struct prb_symbol_index *index, uint64_t address, Elf64_Sym *ret,
			   const char **name);

#endif

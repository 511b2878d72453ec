/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/elf/symbols.h"

#include "base/checked.h"
#include "base/cleanup.h"

/** A range of code, kept because neighbouring symbols share it. */
struct range {
	prb_code_range *find;
	const void *context;
	uint64_t start, end;
};

void prb_symbol_table_set(struct prb_symbol_table *table, const void *entries, uint64_t size,
			  const void *strings, uint64_t strings_size)
{
	const char *last = strings_size ? memrchr(strings, '\0', strings_size) : NULL;
	uint64_t count = PRB_MIN(size / sizeof(Elf64_Sym), (uint64_t)UINT32_MAX);

	*table = (struct prb_symbol_table){.entries = entries, .count = count};
	if (last) {
		table->strings = strings;
		table->strings_size = (uint64_t)(last - table->strings) + 1;
	}
}

const char *prb_symbol_name(const struct prb_symbol_table *table, const Elf64_Sym *symbol)
{
	return symbol->st_name < table->strings_size ? table->strings + symbol->st_name : "";
}

bool prb_symbol_is_defined(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_TYPE(symbol->st_info)) {
	case STT_SECTION:
	case STT_FILE:
	case STT_TLS:
		return false;
	}
	/*
	 * Absolute and common symbols have no address in the file; link-time optimization leaves
	 * thousands of nameless ones behind.
	 */
	return symbol->st_name && symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
	       symbol->st_shndx != SHN_COMMON;
}

bool prb_symbol_table_find(const struct prb_symbol_table *table, const char *name, Elf64_Sym *ret)
{
	size_t name_size = strlen(name) + 1;
	bool found = false;

	for (size_t i = 0; i < table->count; i++) {
		Elf64_Sym symbol = prb_symbol_get(table, i);

		if (!prb_inside(symbol.st_name, name_size, table->strings_size))
			continue;
		const char *its_name = table->strings + symbol.st_name;
		if (*its_name != *name || memcmp(its_name, name, name_size) != 0 ||
		    !prb_symbol_is_defined(&symbol))
			continue;
		if (ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) {
			*ret = symbol;
			return true;
		}
		if (!found)
			*ret = symbol;
		found = true;
	}
	return found;
}

static bool is_function(const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

static bool in_range(struct range *range, uint64_t address)
{
	if (address >= range->start && address < range->end)
		return true;
	range->start = range->end = 0;
	return range->find(range->context, address, &range->start, &range->end);
}

/** Is it a function, or a label between functions (hand-written assembly)? */
static bool is_code(const struct prb_symbol_table *table, const Elf64_Sym *symbol,
		    struct range *range)
{
	if (!prb_symbol_is_defined(symbol))
		return false;
	if (is_function(symbol))
		return symbol->st_size || in_range(range, symbol->st_value);

	/* $x, $d and the like mark where code and data begin on aarch64; they name nothing. */
	return ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE &&
	       *prb_symbol_name(table, symbol) != '$' && in_range(range, symbol->st_value);
}

struct prb_error *prb_symbol_index_add(struct prb_symbol_index *index,
				       const struct prb_symbol_table *table, prb_code_range *find,
				       const void *context)
{
	struct range range = {.find = find, .context = context};
	uint32_t number = index->table_count;

	if (number == PRB_SYMBOL_TABLES_MAX)
		return prb_error_create(PRB_ERROR_FAILED, "more symbol tables than a file has");
	index->tables[index->table_count++] = table;
	for (size_t i = 0; i < table->count; i++) {
		Elf64_Sym symbol = prb_symbol_get(table, i);
		uint64_t end;

		if (!is_code(table, &symbol, &range) ||
		    !prb_add(symbol.st_value, symbol.st_size, &end))
			continue;

		struct prb_symbol_entry *entry = prb_vec_push(&index->list);
		if (!entry)
			return prb_error_nomem();
		*entry = (struct prb_symbol_entry){
			.address = symbol.st_value, .end = end, .symbol = i, .table = number};
	}
	return NULL;
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/** One pass of a radix sort: orders by the digit at @p shift, keeping the order of equal ones. */
static void sort_by_digit(const struct prb_symbol_entry *from, struct prb_symbol_entry *to,
			  size_t count, uint64_t lowest, unsigned shift)
{
	size_t start[DIGITS] = {}, sum = 0;

	for (size_t i = 0; i < count; i++)
		start[(from[i].address - lowest) >> shift & (DIGITS - 1)]++;
	for (size_t i = 0; i < DIGITS; i++) {
		size_t here = start[i];

		start[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[start[(from[i].address - lowest) >> shift & (DIGITS - 1)]++] = from[i];
}

/**
 * Sorts by address. A radix sort, as addresses in a file have few significant bits: a third of
 * the time of qsort() for the tables of a Python library.
 */
static struct prb_error *sort_entries(struct prb_symbol_entry **items, size_t count)
{
	uint64_t lowest = UINT64_MAX, highest = 0;

	for (size_t i = 0; i < count; i++) {
		lowest = PRB_MIN(lowest, (*items)[i].address);
		highest = (*items)[i].address > highest ? (*items)[i].address : highest;
	}
	if (lowest >= highest)
		return NULL;

	struct prb_symbol_entry *other = malloc(count * sizeof(*other));
	if (!other)
		return prb_error_nomem();
	for (unsigned shift = 0; shift < 64 && (highest - lowest) >> shift; shift += DIGIT_BITS) {
		struct prb_symbol_entry *sorted = other;

		sort_by_digit(*items, sorted, count, lowest, shift);
		other = *items;
		*items = sorted;
	}
	free(other);
	return NULL;
}

struct prb_error *prb_symbol_index_sort(struct prb_symbol_index *index, prb_code_range *find,
					const void *context)
{
	struct range range = {.find = find, .context = context};
	uint64_t next = UINT64_MAX;
	size_t count = index->list.count;

	if (!count)
		return NULL;
	PRB_TRY(sort_entries(&index->list.items, count));
	index->list.capacity = count;

	for (size_t i = count; i-- > 0;) {
		struct prb_symbol_entry *entry = &index->list.items[i];

		if (i + 1 < count && entry[1].address != entry->address)
			next = entry[1].address;
		if (entry->end == entry->address && in_range(&range, entry->address))
			entry->end = PRB_MIN(next, range.end);
		if (entry->end - entry->address > index->longest)
			index->longest = entry->end - entry->address;
	}
	return NULL;
}

void prb_symbol_index_deinit(struct prb_symbol_index *index)
{
	prb_vec_free(&index->list);
}

static size_t leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/** Which of two symbols names the code at the same place better? */
static bool is_better(const Elf64_Sym *a, const char *a_name, const Elf64_Sym *b,
		      const char *b_name)
{
	bool a_local = ELF64_ST_BIND(a->st_info) == STB_LOCAL;
	bool b_local = ELF64_ST_BIND(b->st_info) == STB_LOCAL;
	size_t a_underscores = leading_underscores(a_name);
	size_t b_underscores = leading_underscores(b_name);

	if (is_function(a) != is_function(b))
		return is_function(a);
	if (!a->st_size != !b->st_size)
		return a->st_size;
	if (a_local != b_local)
		return b_local;
	if (a_underscores != b_underscores)
		return a_underscores < b_underscores;
	return strcmp(a_name, b_name) < 0;
}

/** Number of entries that start at or before @p address. */
static size_t count_until(const struct prb_symbol_index *index, uint64_t address)
{
	size_t low = 0, high = index->list.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->list.items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool prb_symbol_index_find(const struct prb_symbol_index *index, uint64_t address, Elf64_Sym *ret,
			   const char **name)
{
	uint64_t extent = 0;
	bool found = false;

	for (size_t i = count_until(index, address); i-- > 0;) {
		const struct prb_symbol_entry *entry = &index->list.items[i];

		if (address - entry->address >= index->longest)
			break;
		/* A label inside of a function does not hide the function around it. */
		if (found && is_function(ret) && ret->st_size && ret->st_value != entry->address)
			break;
		if (address >= entry->end)
			continue;

		const struct prb_symbol_table *table = index->tables[entry->table];
		Elf64_Sym symbol = prb_symbol_get(table, entry->symbol);
		const char *its_name = prb_symbol_name(table, &symbol);

		if (found && symbol.st_value != ret->st_value &&
		    !(is_function(&symbol) && symbol.st_size))
			continue;
		if (found && !is_better(&symbol, its_name, ret, *name))
			continue;
		*ret = symbol;
		*name = its_name;
		extent = entry->end - entry->address;
		found = true;
	}
	if (found)
		ret->st_size = extent;
	return found;
}

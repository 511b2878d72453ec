/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/elf/dynamic.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dwarf/elf/symbols.h"

enum {
	MAX_ENTRIES = 256,     /* of the dynamic section; real ones have some 30 */
	MAX_CHAIN = 1 << 16,   /* symbols in one hash bucket */
	MAX_SYMBOLS = 1 << 26, /* in one table */
	MAX_NAME = 1 << 16,    /* bytes of a name */
	VERSION_HIDDEN = 0x8000,
};

/** The header of DT_GNU_HASH; followed by the bloom filter, the buckets and the chains. */
struct gnu_hash {
	uint32_t bucket_count, first_symbol, bloom_size, bloom_shift;
};

/** A lookup under way, with the best candidate so far. */
struct lookup {
	const struct prb_dynamic *dynamic;
	const char *name;
	size_t name_size; /* with the NUL */
	Elf64_Sym symbol;
	bool found, hidden;
};

static void note_entry(struct prb_dynamic *dynamic, const Elf64_Dyn *entry, uint64_t bias)
{
	uint64_t value = entry->d_un.d_val;
	/* glibc relocates the pointers in place; musl and the vdso do not. */
	uint64_t pointer = value >= bias ? value - bias : value;

	switch (entry->d_tag) {
	case DT_SYMTAB:
		dynamic->symbols = pointer;
		break;
	case DT_STRTAB:
		dynamic->strings = pointer;
		break;
	case DT_STRSZ:
		dynamic->strings_size = value;
		break;
	case DT_GNU_HASH:
		dynamic->gnu_hash = pointer;
		break;
	case DT_HASH:
		dynamic->hash = pointer;
		break;
	case DT_VERSYM:
		dynamic->versions = pointer;
		break;
	}
}

struct prb_error *prb_dynamic_init(struct prb_dynamic *dynamic, struct prb_dynamic_source source,
				   uint64_t address, uint64_t size, uint64_t bias)
{
	Elf64_Dyn entries[MAX_ENTRIES];
	size_t count = PRB_MIN(size / sizeof(entries[0]), (uint64_t)MAX_ENTRIES);

	*dynamic = (struct prb_dynamic){.source = source};
	PRB_TRY(source.read(source.context, address, entries, count * sizeof(entries[0])));
	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
		note_entry(dynamic, &entries[i], bias);
	return NULL;
}

/** Reads item @p index of the table of @p size byte items at @p base. */
static struct prb_error *read_item(const struct prb_dynamic *dynamic, uint64_t base, uint64_t index,
				   void *buffer, size_t size)
{
	uint64_t address;

	if (!prb_mul(index, size, &address) || !prb_add(base, address, &address))
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"dynamic symbols: a table leaves the address space");
	return dynamic->source.read(dynamic->source.context, address, buffer, size);
}

/** Does @p symbol have the name that is looked up? */
static struct prb_error *has_name(const struct lookup *l, const Elf64_Sym *symbol, bool *ret)
{
	const struct prb_dynamic *dynamic = l->dynamic;
	char text[256];
	uint64_t at = symbol->st_name;

	*ret = false;
	if (!prb_inside(at, l->name_size, dynamic->strings_size))
		return NULL;
	for (size_t done = 0; done < l->name_size;) {
		size_t length = PRB_MIN(l->name_size - done, sizeof(text));
		uint64_t address;

		if (!prb_add(dynamic->strings, at + done, &address))
			return NULL;
		PRB_TRY(dynamic->source.read(dynamic->source.context, address, text, length));
		if (memcmp(text, l->name + done, length) != 0)
			return NULL;
		done += length;
	}
	*ret = true;
	return NULL;
}

/** Looks whether symbol @p index is the one. */
static struct prb_error *try_symbol(struct lookup *l, uint64_t index)
{
	const struct prb_dynamic *dynamic = l->dynamic;
	Elf64_Sym symbol;
	uint16_t version = 0;
	bool same;

	PRB_TRY(read_item(dynamic, dynamic->symbols, index, &symbol, sizeof(symbol)));
	if (!prb_symbol_is_defined(&symbol))
		return NULL;
	PRB_TRY(has_name(l, &symbol, &same));
	if (!same)
		return NULL;
	if (dynamic->versions)
		PRB_TRY(read_item(dynamic, dynamic->versions, index, &version, sizeof(version)));

	bool hidden = version & VERSION_HIDDEN;
	if (!l->found || (l->hidden && !hidden)) {
		l->symbol = symbol;
		l->found = true;
		l->hidden = hidden;
	}
	return NULL;
}

/** Where the parts of a DT_GNU_HASH table lie. */
static bool gnu_hash_parts(const struct prb_dynamic *dynamic, const struct gnu_hash *header,
			   uint64_t *bloom, uint64_t *buckets, uint64_t *chains)
{
	/* The counts are 32 bits wide, so that only the sum with the address can wrap. */
	return header->bucket_count && header->bloom_size &&
	       prb_add(dynamic->gnu_hash, sizeof(*header), bloom) &&
	       prb_add(*bloom, 8 * (uint64_t)header->bloom_size, buckets) &&
	       prb_add(*buckets, 4 * (uint64_t)header->bucket_count, chains);
}

static struct prb_error *read_gnu_hash(const struct prb_dynamic *dynamic, struct gnu_hash *header,
				       uint64_t *bloom, uint64_t *buckets, uint64_t *chains)
{
	PRB_TRY(read_item(dynamic, dynamic->gnu_hash, 0, header, sizeof(*header)));
	if (!gnu_hash_parts(dynamic, header, bloom, buckets, chains))
		return prb_error_create(PRB_ERROR_BAD_DATA, "dynamic symbols: bad GNU hash table");
	return NULL;
}

static struct prb_error *lookup_gnu_hash(struct lookup *l)
{
	const struct prb_dynamic *dynamic = l->dynamic;
	struct gnu_hash header;
	uint64_t bloom, buckets, chains, word;
	uint32_t hash = 5381, index;

	for (const char *c = l->name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;

	PRB_TRY(read_gnu_hash(dynamic, &header, &bloom, &buckets, &chains));
	PRB_TRY(read_item(dynamic, bloom, hash / 64 % header.bloom_size, &word, sizeof(word)));
	uint64_t mask = 1ULL << (hash % 64) | 1ULL << ((hash >> (header.bloom_shift & 31)) % 64);
	if ((word & mask) != mask)
		return NULL;
	PRB_TRY(read_item(dynamic, buckets, hash % header.bucket_count, &index, sizeof(index)));
	if (index < header.first_symbol)
		return NULL;

	for (uint32_t steps = 0; steps < MAX_CHAIN; steps++, index++) {
		uint32_t link;

		PRB_TRY(read_item(dynamic, chains, index - header.first_symbol, &link,
				  sizeof(link)));
		if ((link | 1) == (hash | 1))
			PRB_TRY(try_symbol(l, index));
		if (link & 1 || (l->found && !l->hidden))
			return NULL;
	}
	return prb_error_create(PRB_ERROR_BAD_DATA, "dynamic symbols: endless GNU hash chain");
}

static struct prb_error *lookup_sysv_hash(struct lookup *l)
{
	const struct prb_dynamic *dynamic = l->dynamic;
	uint32_t counts[2], hash = 0, index;

	for (const char *c = l->name; *c; c++) {
		hash = (hash << 4) + (unsigned char)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}

	/* Two counts, the buckets, then a chain that links symbol to symbol. */
	PRB_TRY(read_item(dynamic, dynamic->hash, 0, counts, sizeof(counts)));
	if (!counts[0])
		return NULL;
	PRB_TRY(read_item(dynamic, dynamic->hash, 2 + (uint64_t)(hash % counts[0]), &index,
			  sizeof(index)));
	for (uint32_t steps = 0; index != STN_UNDEF; steps++) {
		if (steps == MAX_CHAIN || index >= counts[1])
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"dynamic symbols: bad chain in the hash table");
		PRB_TRY(try_symbol(l, index));
		if (l->found && !l->hidden)
			return NULL;
		PRB_TRY(read_item(dynamic, dynamic->hash, 2 + (uint64_t)counts[0] + index, &index,
				  sizeof(index)));
	}
	return NULL;
}

struct prb_error *prb_dynamic_symbol(const struct prb_dynamic *dynamic, const char *name,
				     Elf64_Sym *ret, bool *found)
{
	struct lookup l = {.dynamic = dynamic, .name = name, .name_size = strlen(name) + 1};

	if (dynamic->symbols && dynamic->strings && l.name_size <= MAX_NAME) {
		if (dynamic->gnu_hash)
			PRB_TRY(lookup_gnu_hash(&l));
		else if (dynamic->hash)
			PRB_TRY(lookup_sysv_hash(&l));
	}
	*ret = l.symbol;
	*found = l.found;
	return NULL;
}

/** The highest symbol that the buckets start a chain with, plus the rest of that chain. */
static struct prb_error *count_gnu_hash(const struct prb_dynamic *dynamic, size_t *ret)
{
	struct gnu_hash header;
	uint64_t bloom, buckets, chains;
	uint32_t last = 0, link = 0;

	PRB_TRY(read_gnu_hash(dynamic, &header, &bloom, &buckets, &chains));
	if (header.bucket_count > MAX_SYMBOLS)
		return prb_error_create(PRB_ERROR_BAD_DATA, "dynamic symbols: bad GNU hash table");
	for (uint64_t done = 0; done < header.bucket_count;) {
		uint32_t some[1024];
		size_t count = PRB_MIN(header.bucket_count - done, (uint64_t)PRB_ARRAY_SIZE(some));

		PRB_TRY(dynamic->source.read(dynamic->source.context,
					     buckets + done * sizeof(some[0]), some,
					     count * sizeof(some[0])));
		for (size_t i = 0; i < count; i++)
			last = some[i] > last ? some[i] : last;
		done += count;
	}
	*ret = header.first_symbol;
	if (last < header.first_symbol)
		return NULL;
	for (uint32_t steps = 0; !(link & 1); last++, steps++) {
		if (steps == MAX_CHAIN)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"dynamic symbols: endless GNU hash chain");
		PRB_TRY(read_item(dynamic, chains, last - header.first_symbol, &link,
				  sizeof(link)));
	}
	*ret = last;
	return NULL;
}

struct prb_error *prb_dynamic_count(const struct prb_dynamic *dynamic, size_t *ret)
{
	uint32_t counts[2];

	*ret = 0;
	if (dynamic->hash) {
		PRB_TRY(read_item(dynamic, dynamic->hash, 0, counts, sizeof(counts)));
		*ret = counts[1];
	} else if (dynamic->gnu_hash) {
		PRB_TRY(count_gnu_hash(dynamic, ret));
	}
	if (*ret > MAX_SYMBOLS)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"dynamic symbols: %zu of them cannot be", *ret);
	return NULL;
}

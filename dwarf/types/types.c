/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/types/parse.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "dwarf/types/debug_info.h"

enum {
	MAX_DEPTH = 32,	       /* typedefs of typedefs, members in members, imported units */
	MAX_IMPORTS = 4096,    /* partial units one unit is made of */
	MAX_MEMBERS = 1 << 16, /* of one struct */
	MAX_DIMENSIONS = 8,
	MAX_SECONDS = 5,    /* the largest interpreter takes 0.1 */
	MAX_WORK = 1 << 22, /* looking for members: hostile types hold each other many times over */
	STRUCT_WORK = 64,   /* of that, what looking into one more struct counts */
};

static const char enum_prefix[] = "enum:";

/* A name that some query begins with, and what the unit has under it. */
struct root {
	const char *name;
	size_t length;
	bool enumerator;
	bool has_struct, has_typedef, has_value;
	uint64_t struct_offset, typedef_offset;
	int64_t value;
};

struct member {
	const char *name; /* NULL: anonymous struct or union */
	uint64_t offset;  /* from the start of its struct, in bytes */
	uint64_t type;	  /* offset of its DIE */
	bool has_type;
	uint8_t bit, bits;
};

/* The members of one struct, read once. */
struct layout {
	uint64_t offset; /* of the struct's DIE */
	PRB_VEC(struct member) members;
};

struct reader {
	struct prb_debug_info *info;
	PRB_VEC(struct root) roots;
	PRB_VEC(struct layout) layouts;
	PRB_VEC(uint64_t) imported;
	size_t missing; /* roots without a definition so far */
	size_t work;	/* done to find members, in members looked at */
	bool enumerators, found_any, nomem;
	time_t deadline;
	bool late;
};

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* a few nanoseconds */
	return t.tv_sec;
}

/* Going to a sibling may mean going through all that is left of the unit, and units may import
 * each other many times over: only time bounds that. */
static bool is_late(struct reader *r)
{
	r->late |= now() > r->deadline;
	return r->late;
}

static void reader_deinit(struct reader *r)
{
	struct layout *layout;

	prb_vec_each (layout, &r->layouts)
		prb_vec_free(&layout->members);
	prb_vec_free(&r->layouts);
	prb_vec_free(&r->roots);
	prb_vec_free(&r->imported);
	prb_debug_info_close(r->info);
}

static struct root *find_root(struct reader *r, const char *name, size_t length, bool enumerator)
{
	struct root *root;

	prb_vec_each (root, &r->roots)
		if (root->length == length && root->enumerator == enumerator &&
		    !memcmp(root->name, name, length))
			return root;
	return NULL;
}

/* Splits one alternative "root.a.b" or "enum:root"; the rest of the path stays in *path. */
static const char *split_root(const char **path, const char *end, size_t *length, bool *enumerator)
{
	const char *start = *path;

	*enumerator = (size_t)(end - start) > sizeof(enum_prefix) - 1 &&
		      !memcmp(start, enum_prefix, sizeof(enum_prefix) - 1);
	if (*enumerator)
		start += sizeof(enum_prefix) - 1;

	const char *dot = memchr(start, '.', (size_t)(end - start));
	*length = (size_t)((dot ? dot : end) - start);
	*path = dot ? dot + 1 : end;
	return start;
}

static const char *alternative_end(const char *path)
{
	return path + strcspn(path, "|");
}

static struct prb_error *collect_roots(struct reader *r, const char *path)
{
	for (;;) {
		const char *end = alternative_end(path), *rest = path;
		size_t length;
		bool enumerator;
		const char *name = split_root(&rest, end, &length, &enumerator);

		if (!find_root(r, name, length, enumerator)) {
			struct root *root = prb_vec_push(&r->roots);

			if (!root)
				return prb_error_nomem();
			*root = (struct root){
				.name = name, .length = length, .enumerator = enumerator};
			r->missing++;
			r->enumerators |= enumerator;
		}
		if (!*end)
			return NULL;
		path = end + 1;
	}
}

static void note_enumerators(struct reader *r, Dwarf_Die type)
{
	Dwarf_Die die = NULL;

	while (!is_late(r) && prb_die_next_child(r->info, type, &die)) {
		const char *name = prb_die_name(r->info, die);
		struct root *root = name ? find_root(r, name, strlen(name), true) : NULL;

		if (!root || root->has_value ||
		    !prb_die_signed(r->info, die, DW_AT_const_value, &root->value))
			continue;
		root->has_value = r->found_any = true;
		r->missing--;
	}
	prb_die_free(die);
}

static void note_type(struct reader *r, Dwarf_Die die, unsigned tag)
{
	const char *name = prb_die_name(r->info, die);
	struct root *root = name ? find_root(r, name, strlen(name), false) : NULL;

	if (!root)
		return;
	if (tag == DW_TAG_typedef) {
		if (!root->has_typedef) {
			root->has_typedef = true;
			root->typedef_offset = prb_die_offset(r->info, die);
		}
	} else if (!root->has_struct && !prb_die_has(r->info, die, DW_AT_declaration)) {
		root->has_struct = r->found_any = true;
		root->struct_offset = prb_die_offset(r->info, die);
		r->missing--;
	}
}

static void note_unit(struct reader *r, Dwarf_Die unit, unsigned depth);

/* dwz moves types that units share into partial units, which the units import. */
static void note_import(struct reader *r, Dwarf_Die die, unsigned depth)
{
	uint64_t offset, *seen, *added;

	if (depth >= MAX_DEPTH || r->imported.count >= MAX_IMPORTS ||
	    !prb_die_reference(r->info, die, DW_AT_import, &offset))
		return;
	prb_vec_each (seen, &r->imported)
		if (*seen == offset)
			return;
	added = prb_vec_push(&r->imported);
	if (!added) {
		r->nomem = true;
		return;
	}
	*added = offset;

	Dwarf_Die unit = prb_die_at(r->info, offset);
	if (unit)
		note_unit(r, unit, depth + 1);
	prb_die_free(unit);
}

/* Goes through the top level of a unit and notes where the roots are defined. */
static void note_unit(struct reader *r, Dwarf_Die unit, unsigned depth)
{
	Dwarf_Die die = NULL;

	while (r->missing && !is_late(r) && prb_die_next_child(r->info, unit, &die)) {
		unsigned tag = prb_die_tag(r->info, die);

		switch (tag) {
		case DW_TAG_enumeration_type:
			if (r->enumerators)
				note_enumerators(r, die);
			note_type(r, die, tag);
			break;
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_class_type:
		case DW_TAG_typedef:
			note_type(r, die, tag);
			break;
		case DW_TAG_imported_unit:
			note_import(r, die, depth);
			break;
		default:
			break;
		}
	}
	prb_die_free(die);
}

/* Takes typedefs and qualifiers off *offset; its tag, 0 if it leads nowhere. */
static unsigned strip(struct reader *r, uint64_t *offset)
{
	for (unsigned depth = 0; depth < MAX_DEPTH; depth++) {
		Dwarf_Die die = prb_die_at(r->info, *offset);

		if (!die)
			return 0;

		unsigned tag = prb_die_tag(r->info, die);
		bool more = false;
		switch (tag) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			more = true;
			if (!prb_die_reference(r->info, die, DW_AT_type, offset))
				tag = 0;
			break;
		default:
			break;
		}
		prb_die_free(die);
		if (!more || !tag)
			return tag;
	}
	return 0;
}

static bool array_elements(struct reader *r, Dwarf_Die array, uint64_t *ret)
{
	Dwarf_Die die = NULL;
	unsigned dimensions = 0;

	*ret = 1;
	while (prb_die_next_child(r->info, array, &die)) {
		uint64_t count, last;

		if (prb_die_tag(r->info, die) != DW_TAG_subrange_type)
			continue;
		if (prb_die_unsigned(r->info, die, DW_AT_count, &count))
			;
		else if (prb_die_unsigned(r->info, die, DW_AT_upper_bound, &last))
			count = last + 1;
		else
			count = 0; /* flexible */
		if (++dimensions > MAX_DIMENSIONS || !prb_mul(*ret, count, ret)) {
			prb_die_free(die);
			return false;
		}
	}
	return true;
}

static bool size_of(struct reader *r, uint64_t offset, unsigned depth, uint64_t *ret)
{
	unsigned tag = strip(r, &offset);
	Dwarf_Die die = tag ? prb_die_at(r->info, offset) : NULL;
	uint64_t element, count, element_size;
	bool known;

	if (!die)
		return false;
	known = prb_die_unsigned(r->info, die, DW_AT_byte_size, ret);
	if (!known && tag == DW_TAG_pointer_type) {
		*ret = 8;
		known = true;
	} else if (!known && tag == DW_TAG_array_type && depth < MAX_DEPTH) {
		known = prb_die_reference(r->info, die, DW_AT_type, &element) &&
			array_elements(r, die, &count) &&
			size_of(r, element, depth + 1, &element_size) &&
			prb_mul(count, element_size, ret);
	}
	prb_die_free(die);
	return known;
}

/*
 * Where a bit-field lies: in the storage unit of its type that holds its first bit. DWARF 4 counts
 * from the most significant bit of that unit, DWARF 5 from the start of the struct.
 */
static bool place_bits(struct reader *r, Dwarf_Die die, struct member *m)
{
	uint64_t bits, first, unit = 0;

	if (!prb_die_unsigned(r->info, die, DW_AT_bit_size, &bits))
		return true;
	if (!prb_die_unsigned(r->info, die, DW_AT_byte_size, &unit) &&
	    !(m->has_type && size_of(r, m->type, 0, &unit)))
		return false;
	if (bits == 0 || unit == 0 || unit > 8 || bits > unit * 8)
		return false;

	if (prb_die_unsigned(r->info, die, DW_AT_data_bit_offset, &first)) {
		m->offset = first / 8 / unit * unit;
		first -= m->offset * 8;
		if (first + bits > unit * 8) { /* packed: crosses its unit */
			m->offset += first / 8;
			first %= 8;
		}
	} else if (prb_die_unsigned(r->info, die, DW_AT_bit_offset, &first)) {
		if (first > unit * 8 - bits)
			return false;
		first = unit * 8 - bits - first;
	} else {
		first = 0;
	}
	m->bit = (uint8_t)first;
	m->bits = (uint8_t)bits;
	return true;
}

static bool read_member(struct reader *r, Dwarf_Die die, struct member *ret)
{
	struct member m = {.name = prb_die_name(r->info, die)};

	m.has_type = prb_die_reference(r->info, die, DW_AT_type, &m.type);
	if (!prb_die_member_location(r->info, die, &m.offset))
		m.offset = 0; /* in a union, or placed by its bits */
	if (!place_bits(r, die, &m))
		return false;
	*ret = m;
	return true;
}

/* The members of a struct, read when first asked for; NULL when out of memory. */
static struct layout *layout_of(struct reader *r, uint64_t offset)
{
	struct layout *layout;

	prb_vec_each (layout, &r->layouts)
		if (layout->offset == offset)
			return layout;
	layout = prb_vec_push(&r->layouts);
	if (!layout)
		goto nomem;
	layout->offset = offset;

	Dwarf_Die type = prb_die_at(r->info, offset), die = NULL;
	struct member member;

	while (type && prb_die_next_child(r->info, type, &die)) {
		if (prb_die_tag(r->info, die) != DW_TAG_member || !read_member(r, die, &member))
			continue;

		struct member *added =
			layout->members.count < MAX_MEMBERS ? prb_vec_push(&layout->members) : NULL;
		if (!added)
			break;
		*added = member;
	}
	prb_die_free(die);
	prb_die_free(type);
	return layout;
nomem:
	r->nomem = true;
	return NULL;
}

static bool is_aggregate(unsigned tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_class_type;
}

/* Finds a member by name, also in the anonymous members; *ret's offset is from the outer struct. */
static bool find_member(struct reader *r, uint64_t type, const char *name, size_t length,
			unsigned depth, struct member *ret)
{
	if (depth >= MAX_DEPTH || r->work >= MAX_WORK || !is_aggregate(strip(r, &type)))
		return false;

	struct layout *layout = layout_of(r, type);
	if (!layout)
		return false;
	r->work += STRUCT_WORK + layout->members.count;

	/* An index: the recursion below can move the layouts. */
	size_t place = (size_t)(layout - r->layouts.items), count = layout->members.count;
	for (size_t i = 0; i < count; i++) {
		struct member m = r->layouts.items[place].members.items[i];

		if (m.name && strlen(m.name) == length && !memcmp(m.name, name, length)) {
			*ret = m;
			return true;
		}
	}
	for (size_t i = 0; i < count; i++) {
		struct member m = r->layouts.items[place].members.items[i];

		if (!m.name && m.has_type && find_member(r, m.type, name, length, depth + 1, ret))
			return prb_add(ret->offset, m.offset, &ret->offset);
	}
	return false;
}

/* Follows "a.b.c" from a type; an empty path is the type itself. */
static bool follow(struct reader *r, uint64_t type, const char *path, const char *end,
		   struct prb_type_query *query)
{
	struct member m = {.type = type, .has_type = true};
	uint64_t offset = 0, size = 0;
	bool whole = path == end;

	while (path < end) {
		const char *dot = memchr(path, '.', (size_t)(end - path));
		size_t length = (size_t)((dot ? dot : end) - path);

		if (!m.has_type || !find_member(r, m.type, path, length, 0, &m) ||
		    !prb_add(offset, m.offset, &offset))
			return false;
		path = dot ? dot + 1 : end;
	}
	if (!(m.has_type && size_of(r, m.type, 0, &size)) && whole)
		return false;
	if (offset > INT64_MAX || size > UINT32_MAX)
		return false;
	query->value = whole ? (int64_t)size : (int64_t)offset;
	query->size = (uint32_t)size;
	query->bit = m.bit;
	query->bits = m.bits;
	return true;
}

static bool answer_alternative(struct reader *r, const char *path, const char *end,
			       struct prb_type_query *query)
{
	size_t length;
	bool enumerator;
	const char *name = split_root(&path, end, &length, &enumerator);
	struct root *root = find_root(r, name, length, enumerator);

	if (enumerator) {
		query->value = root->value;
		return root->has_value;
	}
	return (root->has_struct && follow(r, root->struct_offset, path, end, query)) ||
	       (root->has_typedef && follow(r, root->typedef_offset, path, end, query));
}

static void answer(struct reader *r, struct prb_type_query *query)
{
	for (const char *path = query->path;;) {
		const char *end = alternative_end(path);

		query->found = answer_alternative(r, path, end, query);
		if (query->found || !*end)
			return;
		path = end + 1;
	}
}

static bool is_unit(const char *name, const char *unit)
{
	if (!name)
		return false;

	size_t length = strlen(name), wanted = strlen(unit);

	return length >= wanted && !strcmp(name + length - wanted, unit) &&
	       (length == wanted || name[length - wanted - 1] == '/');
}

static struct prb_error *read_unit(struct reader *r, struct prb_elf *elf, const char *unit)
{
	bool seen = false;

	for (;;) {
		Dwarf_Die die;

		PRB_TRY(prb_debug_info_next_unit(r->info, &die));
		if (!die)
			break;
		if (is_unit(prb_die_name(r->info, die), unit)) {
			seen = true;
			note_unit(r, die, 0);
		}
		prb_die_free(die);
		if (r->late)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"the debug information of %s takes too long to "
						"go through",
						prb_elf_name(elf));
		/* Link-time optimisation leaves units of the same name without types. */
		if (r->found_any)
			return NULL;
	}
	if (seen)
		return NULL;
	return prb_error_create(PRB_ERROR_NOT_FOUND, "the debug information of %s has no unit %s",
				prb_elf_name(elf), unit);
}

struct prb_error *prb_types_parse(struct prb_elf *elf, const char *unit,
				  struct prb_type_query *queries, size_t count)
{
	__attribute__((cleanup(reader_deinit))) struct reader r = {.deadline = now() + MAX_SECONDS};

	PRB_TRY(prb_debug_info_open(elf, &r.info));
	for (size_t i = 0; i < count; i++) {
		queries[i].found = false;
		PRB_TRY(collect_roots(&r, queries[i].path));
	}
	PRB_TRY(read_unit(&r, elf, unit));

	size_t found = 0;
	for (size_t i = 0; i < count && !r.nomem; i++) {
		answer(&r, &queries[i]);
		found += queries[i].found;
	}
	if (r.nomem)
		return prb_error_nomem();
	prb_log("types", 1, "%zu of %zu members found in %s of %s", found, count, unit,
		prb_elf_name(elf));
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Messages of protobuf's upb, which are memory of C. A message's definition leads to the table of
 * its fields (number, offset, presence, type) and to their names. The members of a definition
 * change from version to version, so each is found by what it has to be: the name of the message
 * is a text, the table has plausible fields, and the names of fields begin with that of the
 * message. What does not fit together shows no fields.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/arrays/pandas.h"
#include "python/repr/core/handlers.h"
#include "python/repr/library/protobuf_tables.h"

enum {
	DEF_WORDS = 40,
	FIELD_WORDS = 24,
	FIELD_BYTES = 12, /* of a field in the table */
	FIELDS_MAX = 256,
	DEPTH = 3,
	TEXT_MAX = 4096,
};

/* Of descriptor.proto. */
enum {
	TYPE_DOUBLE = 1,
	TYPE_FLOAT,
	TYPE_INT64,
	TYPE_UINT64,
	TYPE_INT32,
	TYPE_FIXED64,
	TYPE_FIXED32,
	TYPE_BOOL,
	TYPE_STRING,
	TYPE_GROUP,
	TYPE_MESSAGE,
	TYPE_BYTES,
	TYPE_UINT32,
	TYPE_ENUM,
	TYPE_SFIXED32,
	TYPE_SFIXED64,
	TYPE_SINT32,
	TYPE_SINT64,
	TYPE_COUNT,
};

enum { MODE_MAP, MODE_ARRAY, MODE_SCALAR, MODE_MASK = 3, ALTERNATE = 16 };

/* As it lies in memory. */
struct field {
	uint32_t number;
	uint16_t offset;
	int16_t presence; /* >0: a bit; <0: where the number of the set one of several is */
	uint16_t sub;
	uint8_t type, mode;
};

struct definition {
	char name[PRB_UPB_NAME]; /* of the message, with its package */
	uint16_t size, count;
	uint64_t table;	     /* address of the fields, by number */
	uint64_t names;	     /* address of their definitions, 0 if there is none */
	unsigned stride, at; /* words of one, and which of them leads to its name */
};

/* Types and offsets of all fields are possible, and the numbers rise. */
static bool has_fields(struct prb_repr *r, uint64_t address, unsigned count, unsigned size)
{
	struct field fields[FIELDS_MAX];
	prb_auto_error struct prb_error *err =
		prb_mem_read(r->mem, address, fields, count * sizeof(*fields));

	for (unsigned i = 0; !err && i < count; i++)
		if (fields[i].offset >= size || !fields[i].type || fields[i].type >= TYPE_COUNT ||
		    (fields[i].mode & MODE_MASK) > MODE_SCALAR || !fields[i].number ||
		    (i && fields[i].number <= fields[i - 1].number))
			return false;
	return !err;
}

/* The table begins with one or two addresses, the last of which is that of the fields; then come
 * the size of a message and the number of fields. */
static bool read_table(struct prb_repr *r, uint64_t address, struct definition *ret)
{
	uint64_t words[3];
	prb_auto_error struct prb_error *err = NULL;

	if (address < 0x10000 || address % 8)
		return false;
	err = prb_repr_words(r, address, 3, words);
	for (unsigned i = 1; !err && i < 3; i++) {
		ret->size = (uint16_t)words[i];
		ret->count = (uint16_t)(words[i] >> 16);
		ret->table = words[i - 1];
		if (ret->size >= 8 && ret->count && ret->count <= FIELDS_MAX &&
		    has_fields(r, ret->table, ret->count, ret->size))
			return true;
	}
	return false;
}

static bool is_of(const char *name, const struct definition *d)
{
	size_t length = strlen(d->name);

	return !strncmp(name, d->name, length) && name[length] == '.' &&
	       !strchr(name + length + 1, '.');
}

/* The definitions of fields follow each other; the names of all are alike. */
static bool read_names(struct prb_repr *r, uint64_t address, struct definition *ret)
{
	uint64_t words[2 * FIELD_WORDS];
	char name[PRB_UPB_NAME];
	prb_auto_error struct prb_error *err = NULL;

	if (address < 0x10000 || address % 8)
		return false;
	err = prb_repr_words(r, address, FIELD_WORDS, words);
	for (ret->at = 3; !err && ret->at <= 4; ret->at++)
		if (prb_upb_name(r, words[ret->at], name) && is_of(name, ret))
			break;
	/* Behind the name: another one, default, scope, what it is of, and the number. */
	if (err || ret->at > 4 || !(uint32_t)words[ret->at + 5])
		return false;
	ret->names = address;
	ret->stride = 0;
	if (ret->count == 1)
		return true;
	for (unsigned stride = ret->at + 6; !err && stride < FIELD_WORDS; stride++) {
		uint64_t next;

		err = prb_repr_word(r, address + (stride + ret->at) * 8, &next);
		if (!err && prb_upb_name(r, next, name) && is_of(name, ret)) {
			ret->stride = stride;
			return true;
		}
	}
	return false;
}

/* Whether the message's name is what a word leads to, its table before that, and names behind it:
 * what other words lead to may look like a name, too. */
static bool fits_together(struct prb_repr *r, const uint64_t words[DEF_WORDS], unsigned named,
			  struct definition *ret)
{
	bool table = false;

	*ret = (struct definition){};
	if (!prb_upb_name(r, words[named], ret->name))
		return false;
	for (unsigned i = 1; i < named && !table; i++)
		table = read_table(r, words[i], ret);
	for (unsigned i = named + 1; table && i < DEF_WORDS; i++)
		if (read_names(r, words[i], ret))
			return true;
	return false;
}

static struct prb_error *read_definition(struct prb_repr *r, uint64_t address,
					 struct definition *ret)
{
	uint64_t words[DEF_WORDS];

	PRB_TRY(prb_repr_walk(r, DEF_WORDS));
	PRB_TRY(prb_repr_words(r, address, DEF_WORDS, words));
	for (unsigned i = 1; i < 8; i++)
		if (fits_together(r, words, i, ret))
			return NULL;
	return prb_repr_bad(address, "not a message with fields"); /* none, too */
}

/* The name of a field, and the definition of its messages. */
static struct prb_error *find_name(struct prb_repr *r, const struct definition *d, uint32_t number,
				   char ret[PRB_UPB_NAME], uint64_t *sub)
{
	uint64_t words[FIELD_WORDS];

	for (unsigned i = 0; i < d->count; i++) {
		PRB_TRY(prb_repr_words(r, d->names + (uint64_t)i * d->stride * 8, d->at + 6,
				       words));
		if ((uint32_t)words[d->at + 5] != number)
			continue;
		if (!prb_upb_name(r, words[d->at], ret) || !is_of(ret, d))
			break;
		memmove(ret, ret + strlen(d->name) + 1, strlen(ret + strlen(d->name)));
		*sub = words[d->at + 4];
		return NULL;
	}
	return prb_repr_bad(d->names, "a field without a name");
}

static unsigned width_of(const struct field *field)
{
	switch (field->type) {
	case TYPE_BOOL:
		return 1;
	case TYPE_FLOAT:
	case TYPE_INT32:
	case TYPE_FIXED32:
	case TYPE_UINT32:
	case TYPE_ENUM:
	case TYPE_SFIXED32:
	case TYPE_SINT32:
		return 4;
	case TYPE_STRING:
	case TYPE_BYTES:
		return 16;
	default:
		return 8;
	}
}

static struct prb_error *put_text(struct prb_repr *r, const uint64_t words[2], bool is_text)
{
	size_t count = PRB_MIN(words[1], (uint64_t)TEXT_MAX);
	prb_auto_str struct prb_str text = {};
	char bytes[TEXT_MAX];

	count = PRB_MIN(count, (size_t)r->max.max_text);
	if (count)
		PRB_TRY(prb_mem_read(r->mem, words[0], bytes, count));
	prb_str_append(&text, bytes, count);
	if (is_text) {
		PRB_TRY(prb_repr_quote_raw(r, &text));
	} else {
		uint32_t wide[TEXT_MAX];

		for (size_t i = 0; i < count; i++)
			wide[i] = (uint8_t)bytes[i];
		prb_repr_quote_bytes(r, wide, count);
	}
	if (count < words[1])
		prb_str_printf(r->out, "…+%llu", (unsigned long long)words[1] - count);
	return NULL;
}

static struct prb_error *put_message(struct prb_repr *r, uint64_t definition, uint64_t message,
				     unsigned depth);

static struct prb_error *put_one(struct prb_repr *r, const struct field *field, uint64_t address,
				 uint64_t sub, unsigned depth)
{
	/* By the types; zigzag and the like are of the wire only. */
	static const char codes[TYPE_COUNT] = {
		[TYPE_DOUBLE] = 'd',   [TYPE_INT64] = 'q',    [TYPE_UINT64] = 'Q',
		[TYPE_FIXED64] = 'Q',  [TYPE_FIXED32] = 'I',  [TYPE_UINT32] = 'I',
		[TYPE_SFIXED32] = 'i', [TYPE_SFIXED64] = 'q', [TYPE_SINT32] = 'i',
		[TYPE_SINT64] = 'q',
	};
	uint8_t bytes[16] = {};
	uint64_t words[2];
	char name[PRB_UPB_NAME] = "";

	PRB_TRY(prb_mem_read(r->mem, address, bytes, width_of(field)));
	memcpy(words, bytes, sizeof(words));
	switch (field->type) {
	case TYPE_BOOL:
		prb_str_puts(r->out, bytes[0] ? "True" : "False");
		return NULL;
	case TYPE_FLOAT:
		prb_numpy_put_number(r, 'f', bytes);
		return NULL;
	case TYPE_STRING:
	case TYPE_BYTES:
		return put_text(r, words, field->type == TYPE_STRING || field->mode & ALTERNATE);
	case TYPE_GROUP:
	case TYPE_MESSAGE:
		prb_str_putc(r->out, '<');
		PRB_TRY(put_message(r, sub, words[0] & ~UINT64_C(3), depth + 1));
		prb_str_putc(r->out, '>');
		return NULL;
	case TYPE_ENUM:
	case TYPE_INT32:
		/* An enum that may have other values, too, is stored as a number. */
		if (field->type == TYPE_ENUM || field->mode & ALTERNATE)
			prb_upb_enum_name(r, sub, (int32_t)words[0], name);
		if (*name)
			prb_str_puts(r->out, name);
		else
			prb_repr_put_number(r, 'i', bytes);
		return NULL;
	default:
		prb_repr_put_number(r, codes[field->type], bytes);
		return NULL;
	}
}

/* Of a repeated field: an address with the size of an item in its lowest bits, and how many. */
static struct prb_error *put_repeated(struct prb_repr *r, const struct field *field, uint64_t array,
				      uint64_t sub, unsigned depth)
{
	struct prb_items items = {.r = r};
	uint64_t words[2];

	PRB_TRY(prb_repr_words(r, array, 2, words));
	items.total = words[1];
	words[0] &= ~UINT64_C(7);
	prb_str_putc(r->out, '[');
	while (prb_items_next(&items))
		PRB_TRY(put_one(r, field, words[0] + (items.done - 1) * width_of(field), sub,
				depth));
	prb_str_putc(r->out, ']');
	return NULL;
}

static struct prb_error *put_key(struct prb_repr *r, const struct field *field,
				 const struct prb_upb_entry *entry)
{
	const uint64_t text[2] = {entry->key, entry->length};

	if (field->type == TYPE_STRING || field->type == TYPE_BYTES)
		return put_text(r, text, true);
	if (entry->key)
		return put_one(r, field, entry->key, 0, 0);
	prb_str_putc(r->out, '0');
	return NULL;
}

/* A map is a message of a key and a value, repeated. */
static struct prb_error *put_map(struct prb_repr *r, uint64_t address, uint64_t definition,
				 unsigned depth)
{
	struct prb_items items = {.r = r};
	struct prb_upb_map map;
	struct prb_upb_entry entry;
	struct definition d;
	struct field fields[2];
	char name[PRB_UPB_NAME];
	uint64_t sub;

	PRB_TRY(read_definition(r, definition, &d));
	if (d.count != 2)
		return prb_repr_bad(definition, "not what a map consists of");
	PRB_TRY(prb_mem_read(r->mem, d.table, fields, sizeof(fields)));
	PRB_TRY(find_name(r, &d, fields[1].number, name, &sub));
	PRB_TRY(prb_upb_map_open(r, address, &map));
	items.total = map.count;
	prb_str_putc(r->out, '{');
	while (prb_items_next(&items)) {
		PRB_TRY(prb_upb_map_next(&map, &entry));
		if (!entry.value)
			return prb_repr_bad(address, "a map that changes");
		PRB_TRY(put_key(r, &fields[0], &entry));
		prb_str_puts(r->out, ": ");
		if (fields[1].type == TYPE_STRING || fields[1].type == TYPE_BYTES)
			PRB_TRY(prb_repr_word(r, entry.value, &entry.value));
		PRB_TRY(put_one(r, &fields[1], entry.value, sub, depth));
	}
	prb_str_putc(r->out, '}');
	return NULL;
}

/* A map of which the layout is not known shows no entries. */
static struct prb_error *put_map_or_none(struct prb_repr *r, uint64_t field, uint64_t definition,
					 unsigned depth)
{
	size_t start = r->out->length;
	struct prb_error *err;
	uint64_t map;

	PRB_TRY(prb_repr_word(r, field, &map));
	err = put_map(r, map, definition, depth);
	if (!prb_error_catch(&err, PRB_ERROR_BAD_DATA) && !prb_error_catch(&err, PRB_ERROR_FAULT))
		return err;
	prb_str_truncate(r->out, start);
	prb_str_puts(r->out, "{…}");
	return NULL;
}

/* A field without presence of its own is set if it is not zero. */
static struct prb_error *is_set(struct prb_repr *r, const struct field *field, uint64_t message,
				bool *ret)
{
	uint64_t words[2] = {};
	uint32_t number;
	uint8_t bits;

	if ((field->mode & MODE_MASK) == MODE_SCALAR && field->presence > 0) {
		PRB_TRY(prb_mem_read_u8(r->mem, message + (unsigned)field->presence / 8, &bits));
		*ret = bits >> field->presence % 8 & 1;
		return NULL;
	}
	if ((field->mode & MODE_MASK) == MODE_SCALAR && field->presence < 0) {
		PRB_TRY(prb_mem_read_u32(r->mem, message + (uint16_t)~field->presence, &number));
		*ret = number == field->number;
		return NULL;
	}
	PRB_TRY(prb_mem_read(r->mem, message + field->offset, words,
			     (field->mode & MODE_MASK) == MODE_SCALAR ? width_of(field) : 8));
	if (field->type == TYPE_STRING || field->type == TYPE_BYTES)
		words[0] = (field->mode & MODE_MASK) == MODE_SCALAR ? words[1] : words[0];
	*ret = words[0];
	return NULL;
}

static struct prb_error *put_field(struct prb_repr *r, const struct definition *d,
				   const struct field *field, uint64_t message, unsigned depth)
{
	uint64_t address = message + field->offset, array, sub;
	char name[PRB_UPB_NAME];

	PRB_TRY(find_name(r, d, field->number, name, &sub));
	prb_str_printf(r->out, "%s=", name);
	switch (field->mode & MODE_MASK) {
	case MODE_MAP:
		return put_map_or_none(r, address, sub, depth);
	case MODE_ARRAY:
		PRB_TRY(prb_repr_word(r, address, &array));
		return put_repeated(r, field, array, sub, depth);
	default:
		return put_one(r, field, address, sub, depth);
	}
}

/* The fields that are set, divided by blanks. */
static struct prb_error *put_message(struct prb_repr *r, uint64_t definition, uint64_t message,
				     unsigned depth)
{
	struct field fields[FIELDS_MAX];
	struct definition d;
	unsigned shown = 0;
	bool set;

	if (depth > DEPTH) {
		prb_str_puts(r->out, "…");
		return NULL;
	}
	PRB_TRY(read_definition(r, definition, &d));
	PRB_TRY(prb_mem_read(r->mem, d.table, fields, d.count * sizeof(*fields)));
	for (unsigned i = 0; i < d.count; i++) {
		PRB_TRY(is_set(r, &fields[i], message, &set));
		if (!set)
			continue;
		if (shown)
			prb_str_putc(r->out, ' ');
		if (shown++ >= r->max.max_attributes || !prb_repr_room(r)) {
			prb_str_puts(r->out, "…");
			return NULL;
		}
		PRB_TRY(put_field(r, &d, &fields[i], message, depth));
	}
	return NULL;
}

/* Its words: arena, definition (with a bit if it is not set yet), message. */
static struct prb_error *put_object(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	enum { DEFINITION = 1, MESSAGE };
	uint64_t words[3];
	size_t start;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 3, words));
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	prb_str_putc(r->out, ' ');
	start = r->out->length;
	if (!(words[DEFINITION] & 1))
		PRB_TRY(put_message(r, words[DEFINITION], words[MESSAGE], 0));
	if (r->out->length == start)
		prb_str_truncate(r->out, start - 1);
	prb_str_putc(r->out, '>');
	return NULL;
}

struct prb_error *prb_repr_handle_protobuf(struct prb_repr *r, uint64_t object,
					   struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_object);
}

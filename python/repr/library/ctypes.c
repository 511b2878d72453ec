/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Objects of ctypes: an address in memory of C, read as the class says. Numbers and texts, the
 * fields of structures and unions, the items of arrays, and what a pointer leads to.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/arrays/pandas.h"
#include "python/repr/core/handlers.h"

enum { C_BYTES_MAX = 1 << 26, C_DEPTH_MAX = 4, TEXT_MAX = 2000, FIELDS_MAX = 256 };

/* An object's words: where its memory is, whether it frees that, its owner, bytes, ... */
enum { C_POINTER, C_SIZE = 3, C_WORDS };

/* What ctypes derives classes from. */
static const struct {
	const char *name;
	enum prb_c_kind kind;
} bases[] = {
	{"_ctypes._SimpleCData", PRB_C_SIMPLE}, {"_ctypes.Structure", PRB_C_STRUCTURE},
	{"_ctypes.Union", PRB_C_STRUCTURE},	{"_ctypes.Array", PRB_C_ARRAY},
	{"_ctypes._Pointer", PRB_C_POINTER},
};

/* A value of C, and where it lies. */
struct value {
	uint64_t address, size; /* bytes that there are */
	unsigned depth;
};

enum prb_c_kind prb_repr_c_kind(struct prb_repr *r, const struct prb_type *type)
{
	uint64_t mro[PRB_MRO_MAX];
	struct prb_type *base;
	size_t count;
	prb_auto_error struct prb_error *err = prb_repr_mro(r, type, mro, &count);

	for (size_t i = 1; !err && i < count; i++) {
		err = prb_repr_type(r, mro[i], &base);
		for (size_t j = 0; !err && j < PRB_ARRAY_SIZE(bases); j++)
			if (prb_type_is(base, bases[j].name))
				return bases[j].kind;
	}
	return PRB_C_NONE;
}

/* The code of a simple type, one of struct's and some more. */
static struct prb_error *read_code(struct prb_repr *r, const struct prb_type *type, char *ret)
{
	prb_auto_str struct prb_str text = {};
	uint64_t code;

	PRB_TRY(prb_repr_lookup(r, type, "_type_", &code, NULL));
	PRB_TRY(prb_repr_text(r, code, 2, &text));
	if (text.length != 1)
		return prb_repr_bad(type->address, "a simple type without a code");
	*ret = *text.data;
	return NULL;
}

/* Whether its bytes are in the other order: it is the one that its counterpart names. */
static bool is_swapped(struct prb_repr *r, const struct prb_type *type)
{
	uint64_t big = 0, little = 0;
	prb_auto_error struct prb_error *err = NULL;

	err = prb_repr_lookup(r, type, "__ctype_be__", &big, NULL);
	if (!err)
		err = prb_repr_lookup(r, type, "__ctype_le__", &little, NULL);
	return !err && big == type->address && little != big;
}

static unsigned code_size(char code)
{
	if (strchr("cbB?", code))
		return 1;
	if (strchr("hHv", code))
		return 2;
	if (strchr("iIfu", code))
		return 4;
	return code == 'g' ? sizeof(long double) : 8;
}

static struct prb_error *put_c_text(struct prb_repr *r, uint64_t address, uint64_t max)
{
	uint32_t words[TEXT_MAX];
	size_t count = 0;

	max = PRB_MIN(PRB_MIN(max, (uint64_t)TEXT_MAX), (uint64_t)r->max.max_text);
	for (uint8_t byte; count < max; count++) {
		PRB_TRY(prb_mem_read_u8(r->mem, address + count, &byte));
		if (!byte)
			break;
		words[count] = byte;
	}
	prb_repr_quote_bytes(r, words, count);
	return NULL;
}

static struct prb_error *put_wide_text(struct prb_repr *r, uint64_t address, uint64_t max)
{
	uint32_t words[TEXT_MAX];
	size_t count = 0;

	max = PRB_MIN(PRB_MIN(max, (uint64_t)TEXT_MAX), (uint64_t)r->max.max_text);
	for (; count < max; count++) {
		PRB_TRY(prb_mem_read_u32(r->mem, address + count * 4, &words[count]));
		if (!words[count])
			break;
	}
	prb_repr_quote(r, words, count);
	return NULL;
}

/* A pointer to text, to anything, or to an object; *text is left out if it cannot be read. */
static struct prb_error *put_address(struct prb_repr *r, char code, uint64_t address)
{
	size_t start;
	struct prb_error *err;

	if (code == 'O')
		return prb_repr_object(r, address);
	if (!address) {
		prb_str_puts(r->out, "None");
		return NULL;
	}
	prb_str_printf(r->out, "%llu", (unsigned long long)address);
	if (code == 'P')
		return NULL;
	start = r->out->length;
	prb_str_puts(r->out, ": ");
	err = code == 'z' ? put_c_text(r, address, TEXT_MAX) : put_wide_text(r, address, TEXT_MAX);
	if (err)
		prb_str_truncate(r->out, start);
	return prb_error_catch(&err, PRB_ERROR_FAULT) ? NULL : err;
}

static struct prb_error *put_simple(struct prb_repr *r, const struct prb_type *type,
				    const struct value *at)
{
	uint8_t bytes[sizeof(long double)] = {};
	long double wide;
	uint64_t word;
	unsigned size;
	char code;

	PRB_TRY(read_code(r, type, &code));
	size = code_size(code);
	if (at->size < size)
		return prb_repr_bad(at->address, "a value that is cut off");
	PRB_TRY(prb_mem_read(r->mem, at->address, bytes, size));
	for (unsigned i = 0; i < size / 2 && is_swapped(r, type); i++) {
		uint8_t byte = bytes[i];

		bytes[i] = bytes[size - 1 - i];
		bytes[size - 1 - i] = byte;
	}
	memcpy(&word, bytes, sizeof(word));
	switch (code) {
	case '?':
	case 'v':
		prb_str_puts(r->out, word ? "True" : "False");
		return NULL;
	case 'c':
		prb_repr_quote_bytes(r, (uint32_t[]){(uint8_t)word}, 1);
		return NULL;
	case 'u':
		prb_repr_quote(r, (uint32_t[]){(uint32_t)word}, 1);
		return NULL;
	case 'g':
		memcpy(&wide, bytes, sizeof(wide));
		prb_repr_put_double(r, (double)wide);
		return NULL;
	default:
		if (strchr("POzZ", code))
			return put_address(r, code, word);
		return prb_repr_put_number(r, code, bytes)
			       ? NULL
			       : prb_repr_bad(at->address, "a type that is not known");
	}
}

static struct prb_error *put_value(struct prb_repr *r, struct prb_type *type,
				   const struct value *at);

/* Bits of a field, of which there are fewer than its type has. */
static struct prb_error *put_bits(struct prb_repr *r, const struct prb_type *type, uint64_t address,
				  unsigned shift, unsigned bits)
{
	uint64_t word = 0;
	unsigned size;
	char code;

	PRB_TRY(read_code(r, type, &code));
	size = code_size(code);
	if (size > 8 || !bits || shift + bits > size * 8)
		return prb_repr_bad(address, "impossible bits");
	PRB_TRY(prb_mem_read(r->mem, address, &word, size));
	if (is_swapped(r, type))
		word = __builtin_bswap64(word) >> (64 - size * 8);
	word <<= 64 - bits - shift;
	if (strchr("bhilq", code))
		prb_str_printf(r->out, "%lld", (long long)((int64_t)word >> (64 - bits)));
	else if (code == '?')
		prb_str_puts(r->out, word >> (64 - bits) ? "True" : "False");
	else
		prb_str_printf(r->out, "%llu", (unsigned long long)(word >> (64 - bits)));
	return NULL;
}

static bool is_field(struct prb_repr *r, uint64_t descriptor)
{
	return prb_repr_is(r, descriptor, "_ctypes.CField") ||
	       prb_repr_is(r, descriptor, "ctypes.CField");
}

/* A field, as the descriptor in the class says: its offset, size, number and type. Up to 3.13 the
 * size of one with bits has them in its upper half, and where they begin in the lower one. */
static struct prb_error *put_field(struct prb_repr *r, uint64_t descriptor, const struct value *at)
{
	enum { NEW_FIELD = 0x030e, BITS = 6 };
	uint64_t words[4], inside, bits = 0, shift = 0, new_bits;
	struct value field = {.depth = at->depth + 1};
	struct prb_type *type;

	if (!is_field(r, descriptor))
		return prb_repr_bad(descriptor, "not a field");
	PRB_TRY(prb_repr_words(r, descriptor + (uint64_t)r->layout->object_size, 4, words));
	PRB_TRY(prb_repr_type(r, words[3], &type));
	if (r->layout->version >= NEW_FIELD) {
		/* Behind two functions: anonymous, bits, shift. */
		PRB_TRY(prb_repr_member(r, descriptor, BITS, &new_bits));
		bits = new_bits >> 8 & 0xff;
		shift = new_bits >> 16 & 0xff;
	} else if (words[1] >> 16 && prb_repr_c_kind(r, type) == PRB_C_SIMPLE) {
		bits = words[1] >> 16;
		shift = words[1] & 0xffff;
	}
	inside = at->size > words[0] ? at->size - words[0] : 0;
	if (bits)
		return shift < 64 && bits <= 64 - shift && inside
			       ? put_bits(r, type, at->address + words[0], (unsigned)shift,
					  (unsigned)bits)
			       : prb_repr_bad(descriptor, "impossible bits");
	if (words[1] > inside)
		return prb_repr_bad(descriptor, "a field that is cut off");
	field.address = at->address + words[0];
	field.size = words[1];
	return put_value(r, type, &field);
}

static struct prb_error *put_named_field(struct prb_repr *r, const struct prb_type *class,
					 uint64_t entry, const struct value *at)
{
	enum { NAME_CHARACTERS = 200 };
	prb_auto_str struct prb_str name = {};
	uint64_t parts[2], count, descriptor;
	struct prb_error *err;

	PRB_TRY(prb_repr_tuple(r, entry, parts, 2, &count));
	if (count < 2)
		return prb_repr_bad(entry, "not a field");
	PRB_TRY(prb_repr_text(r, parts[0], NAME_CHARACTERS, &name));
	PRB_TRY(prb_repr_dict_get(r, class->dict, prb_str_text(&name), &descriptor));
	prb_str_printf(r->out, "%s=", prb_str_text(&name));

	size_t start = r->out->length;

	err = put_field(r, descriptor, at);
	if (!prb_error_catch(&err, PRB_ERROR_FAULT) && !prb_error_catch(&err, PRB_ERROR_BAD_DATA))
		return err;
	prb_str_truncate(r->out, start);
	prb_str_puts(r->out, "<unreadable>");
	return NULL;
}

/* The fields that one class adds; *shown counts all. */
static struct prb_error *put_own_fields(struct prb_repr *r, const struct prb_type *class,
					const struct value *at, unsigned *shown)
{
	uint64_t fields, items, count, entry;
	struct prb_error *err = prb_repr_dict_get(r, class->dict, "_fields_", &fields);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	if (prb_repr_is(r, fields, "tuple")) {
		PRB_TRY(prb_repr_tuple(r, fields, NULL, 0, &count));
		items = fields + (uint64_t)r->layout->tuple_items;
	} else {
		PRB_TRY(prb_repr_list(r, fields, &items, &count));
	}
	for (uint64_t i = 0; i < count; i++) {
		prb_str_putc(r->out, ' ');
		if (i >= FIELDS_MAX || *shown >= r->max.max_attributes || !prb_repr_room(r)) {
			prb_str_printf(r->out, "…+%llu", (unsigned long long)(count - i));
			return NULL;
		}
		++*shown;
		PRB_TRY(prb_repr_word(r, items + i * 8, &entry));
		PRB_TRY(put_named_field(r, class, entry, at));
	}
	return NULL;
}

static struct prb_error *put_structure(struct prb_repr *r, struct prb_type *type,
				       const struct value *at)
{
	uint64_t mro[PRB_MRO_MAX];
	struct prb_type *class;
	unsigned shown = 0;
	size_t count;

	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = count; i-- > 0;) {
		PRB_TRY(prb_repr_type(r, mro[i], &class));
		if (class->flags & PRB_PY_HEAP_TYPE && class->dict)
			PRB_TRY(put_own_fields(r, class, at, &shown));
	}
	prb_str_putc(r->out, '>');
	return NULL;
}

/* Bytes that a value of the type takes; BAD_DATA if that is not known. */
static struct prb_error *item_size(struct prb_repr *r, struct prb_type *type, uint64_t array,
				   uint64_t length, uint64_t *ret)
{
	char code;

	if (prb_repr_c_kind(r, type) == PRB_C_SIMPLE) {
		PRB_TRY(read_code(r, type, &code));
		*ret = code_size(code);
		return NULL;
	}
	if (!length || array % length)
		return prb_repr_bad(type->address, "items of impossible size");
	*ret = array / length;
	return NULL;
}

static struct prb_error *put_array(struct prb_repr *r, struct prb_type *type,
				   const struct value *at)
{
	struct value item = {.address = at->address, .depth = at->depth + 1};
	struct prb_items items = {.r = r};
	struct prb_type *its;
	uint64_t found;
	int64_t length;
	char code = 0;

	PRB_TRY(prb_repr_lookup(r, type, "_length_", &found, NULL));
	PRB_TRY(prb_repr_int(r, found, &length));
	PRB_TRY(prb_repr_lookup(r, type, "_type_", &found, NULL));
	PRB_TRY(prb_repr_type(r, found, &its));
	if (prb_repr_c_kind(r, its) == PRB_C_SIMPLE)
		PRB_TRY(read_code(r, its, &code));
	if (length < 0 || length > C_BYTES_MAX)
		return prb_repr_bad(at->address, "an array of impossible length");
	if (code == 'c')
		return put_c_text(r, at->address, PRB_MIN((uint64_t)length, at->size));
	if (code == 'u')
		return put_wide_text(r, at->address, PRB_MIN((uint64_t)length, at->size / 4));
	PRB_TRY(item_size(r, its, at->size, (uint64_t)length, &item.size));
	if ((uint64_t)length * item.size > at->size)
		return prb_repr_bad(at->address, "an array that is cut off");
	items.total = (uint64_t)length;
	prb_str_putc(r->out, '[');
	while (prb_items_next(&items)) {
		PRB_TRY(put_value(r, its, &item));
		item.address += item.size;
	}
	prb_str_putc(r->out, ']');
	return NULL;
}

/* A pointer leads on to what it says, as far as that can be read. */
static struct prb_error *put_pointer(struct prb_repr *r, struct prb_type *type,
				     const struct value *at)
{
	struct value target = {.size = C_BYTES_MAX, .depth = at->depth + 1};
	struct prb_error *err;
	struct prb_type *its;
	uint64_t found;
	size_t start;

	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	PRB_TRY(prb_repr_word(r, at->address, &target.address));
	if (!target.address) {
		prb_str_puts(r->out, " NULL>");
		return NULL;
	}
	prb_str_printf(r->out, " %#llx", (unsigned long long)target.address);
	start = r->out->length;
	PRB_TRY(prb_repr_lookup(r, type, "_type_", &found, NULL));
	PRB_TRY(prb_repr_type(r, found, &its));
	prb_str_puts(r->out, " → ");
	/* Of an array behind it, the size is not known. */
	err = prb_repr_c_kind(r, its) == PRB_C_ARRAY ? prb_repr_bad(found, "an array")
						     : put_value(r, its, &target);
	if (err)
		prb_str_truncate(r->out, start);
	if (!prb_error_catch(&err, PRB_ERROR_FAULT))
		prb_error_catch(&err, PRB_ERROR_BAD_DATA);
	prb_str_putc(r->out, '>');
	return err;
}

static struct prb_error *put_value(struct prb_repr *r, struct prb_type *type,
				   const struct value *at)
{
	if (at->depth > C_DEPTH_MAX || at->size > C_BYTES_MAX) {
		prb_str_puts(r->out, "…");
		return NULL;
	}
	switch (prb_repr_c_kind(r, type)) {
	case PRB_C_SIMPLE:
		return put_simple(r, type, at);
	case PRB_C_STRUCTURE:
		return put_structure(r, type, at);
	case PRB_C_ARRAY:
		return put_array(r, type, at);
	case PRB_C_POINTER:
		return put_pointer(r, type, at);
	case PRB_C_NONE:
		break;
	}
	return prb_repr_bad(type->address, "not a type of ctypes");
}

/* c_int(5); the last part of tp_name also says if the bytes are in the other order. An object of a
 * class derived from that has its value as an attribute. */
static struct prb_error *put_simple_object(struct prb_repr *r, struct prb_type *type,
					   const struct value *at)
{
	const char *dot = strrchr(type->name, '.');
	struct prb_type *base;

	PRB_TRY(prb_repr_type(r, type->base, &base));
	if (prb_type_is(base, "_ctypes._SimpleCData")) {
		prb_str_printf(r->out, "%s(", dot ? dot + 1 : type->name);
		PRB_TRY(put_value(r, type, at));
		prb_str_putc(r->out, ')');
		return NULL;
	}
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	prb_str_puts(r->out, " value=");
	PRB_TRY(put_value(r, type, at));
	prb_str_putc(r->out, '>');
	return NULL;
}

static struct prb_error *put_object(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	enum prb_c_kind kind = prb_repr_c_kind(r, type);
	struct value at = {};
	uint64_t words[C_WORDS];

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, C_WORDS, words));
	at.address = words[C_POINTER];
	at.size = words[C_SIZE];
	if (kind == PRB_C_SIMPLE)
		return put_simple_object(r, type, &at);
	if (kind != PRB_C_ARRAY)
		return put_value(r, type, &at);
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	prb_str_putc(r->out, ' ');
	PRB_TRY(put_value(r, type, &at));
	prb_str_putc(r->out, '>');
	return NULL;
}

struct prb_error *prb_repr_handle_c_value(struct prb_repr *r, uint64_t object,
					  struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_object);
}

struct prb_error *prb_repr_c_part(struct prb_repr *r, uint64_t object, const char *name,
				  const char **type)
{
	uint64_t words[C_WORDS], found;
	size_t start = r->out->length;
	struct value at = {};
	struct prb_type *own, *its;
	char code;

	PRB_TRY(prb_repr_type_of(r, object, &own));
	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, C_WORDS, words));
	at.address = words[C_POINTER];
	at.size = words[C_SIZE];
	switch (prb_repr_c_kind(r, own)) {
	case PRB_C_STRUCTURE:
		PRB_TRY(prb_repr_lookup(r, own, name, &found, NULL));
		if (!is_field(r, found))
			return prb_error_create(PRB_ERROR_NOT_FOUND, "computed");
		PRB_TRY(put_field(r, found, &at));
		break;
	case PRB_C_SIMPLE:
		PRB_TRY(read_code(r, own, &code));
		if (strcmp(name, "value") != 0 || strchr("POzZ", code))
			return prb_error_create(PRB_ERROR_NOT_FOUND, "computed");
		PRB_TRY(put_simple(r, own, &at));
		break;
	case PRB_C_POINTER:
		if (strcmp(name, "contents") != 0)
			return prb_error_create(PRB_ERROR_NOT_FOUND, "computed");
		at.size = C_BYTES_MAX;
		PRB_TRY(prb_repr_word(r, at.address, &at.address));
		PRB_TRY(prb_repr_lookup(r, own, "_type_", &found, NULL));
		PRB_TRY(prb_repr_type(r, found, &its));
		PRB_TRY(put_value(r, its, &at));
		break;
	default:
		return prb_error_create(PRB_ERROR_NOT_FOUND, "computed");
	}
	/* Of what is no value of Python's own, the text is the object's. */
	*type = strchr("<[", prb_str_text(r->out)[start])
			? "object"
			: prb_repr_text_type(prb_str_text(r->out) + start);
	return NULL;
}

/* Its words: pointer, name. */
struct prb_error *prb_repr_handle_capsule(struct prb_repr *r, uint64_t object,
					  struct prb_type *type __attribute__((unused)))
{
	enum { NAME = 1, BYTES = 256 };
	char name[BYTES];
	uint64_t address;

	PRB_TRY(prb_repr_member(r, object, NAME, &address));
	if (address)
		PRB_TRY(prb_repr_cstr(r, address, name, sizeof(name)));
	for (char *c = name; address && *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	prb_str_printf(r->out, "<capsule object %s%s%s at %#llx>", address ? "\"" : "",
		       address ? name : "NULL", address ? "\"" : "", (unsigned long long)object);
	return NULL;
}

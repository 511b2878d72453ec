/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Members: __slots__ and the fields of C types, which lie at fixed places of an object. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

enum { MEMBERS_MAX = 4096, TEXT_BYTES = 256, DEFINITION_WORDS = 5 };

/* flags of a definition */
enum { RELATIVE = 8, AFTER_ITEMS = 16 };

/* Numbers of CPython's structmember.h. */
enum {
	MEMBER_SHORT = 0,
	MEMBER_INT = 1,
	MEMBER_LONG = 2,
	MEMBER_FLOAT = 3,
	MEMBER_DOUBLE = 4,
	MEMBER_STRING = 5,
	MEMBER_OBJECT = 6,
	MEMBER_CHAR = 7,
	MEMBER_BYTE = 8,
	MEMBER_UBYTE = 9,
	MEMBER_USHORT = 10,
	MEMBER_UINT = 11,
	MEMBER_ULONG = 12,
	MEMBER_STRING_INPLACE = 13,
	MEMBER_BOOL = 14,
	MEMBER_OBJECT_EX = 16,
	MEMBER_LONGLONG = 17,
	MEMBER_ULONGLONG = 18,
	MEMBER_SIZE = 19,
	MEMBER_NONE = 20,
};

static const uint8_t widths[] = {
	[MEMBER_SHORT] = 2,    [MEMBER_INT] = 4,
	[MEMBER_LONG] = 8,     [MEMBER_FLOAT] = 4,
	[MEMBER_DOUBLE] = 8,   [MEMBER_STRING] = 8,
	[MEMBER_OBJECT] = 8,   [MEMBER_CHAR] = 1,
	[MEMBER_BYTE] = 1,     [MEMBER_UBYTE] = 1,
	[MEMBER_USHORT] = 2,   [MEMBER_UINT] = 4,
	[MEMBER_ULONG] = 8,    [MEMBER_STRING_INPLACE] = 1,
	[MEMBER_BOOL] = 1,     [MEMBER_OBJECT_EX] = 8,
	[MEMBER_LONGLONG] = 8, [MEMBER_ULONGLONG] = 8,
	[MEMBER_SIZE] = 8,     [MEMBER_NONE] = 1,
};

/* name, type, offset, flags, doc */
static struct prb_error *read_definition(struct prb_repr *r, uint64_t address,
					 struct prb_member *ret, bool *end)
{
	uint64_t words[DEFINITION_WORDS];

	PRB_TRY(prb_repr_words(r, address, DEFINITION_WORDS, words));
	*end = !words[0];
	if (*end)
		return NULL;
	ret->kind = (int)words[1];
	/* An offset from elsewhere cannot be read; no class has one. */
	ret->offset = words[3] & RELATIVE ? UINT64_MAX : words[2];
	ret->after_items = words[3] & AFTER_ITEMS && r->traits->slots_after_items;
	return prb_repr_cstr(r, words[0], ret->name, sizeof(ret->name));
}

struct prb_error *prb_repr_members_each(struct prb_repr *r, const struct prb_type *class,
					bool (*visit)(void *context,
						      const struct prb_member *member),
					void *context)
{
	struct prb_member member;
	bool end = !class->members;

	for (unsigned i = 0; !end && i < MEMBERS_MAX; i++) {
		PRB_TRY(prb_repr_walk(r, 1));
		PRB_TRY(read_definition(r, class->members + (uint64_t)i * DEFINITION_WORDS * 8,
					&member, &end));
		if (!end && !visit(context, &member))
			return NULL;
	}
	return NULL;
}

/* Whether its objects have one of that kind there; the names of members need not be readable. */
static bool describes(struct prb_repr *r, const struct prb_type *class, int kind, int32_t offset)
{
	enum { FEW = 64 };

	for (unsigned i = 0; i < FEW; i++) {
		uint64_t words[DEFINITION_WORDS];
		prb_auto_error struct prb_error *err = prb_repr_words(
			r, class->members + (uint64_t)i * sizeof(words), DEFINITION_WORDS, words);

		if (err || !words[0])
			return false;
		if ((int)words[1] == kind && words[2] == (uint64_t)offset)
			return true;
	}
	return false;
}

bool prb_object_is_code_type(struct prb_python *py, struct prb_mem *mem, uint64_t address)
{
	const struct prb_layout *l = &py->layout;
	prb_auto_repr struct prb_repr r;
	struct prb_type *type;

	prb_repr_init(&r, py, mem, NULL, NULL);

	prb_auto_error struct prb_error *err = prb_repr_nameless_type(&r, address, &type);

	return !err && type->members && type->flags & PRB_PY_READY &&
	       !(type->flags & (PRB_PY_HEAP_TYPE | PRB_PY_KINDS)) &&
	       describes(&r, type, MEMBER_OBJECT, l->code_name) &&
	       describes(&r, type, MEMBER_OBJECT, l->code_filename) &&
	       describes(&r, type, MEMBER_OBJECT, l->code_linetable) &&
	       describes(&r, type, MEMBER_INT, l->code_firstlineno) &&
	       describes(&r, type, MEMBER_INT, l->code_flags);
}

struct prb_error *prb_repr_member_of(struct prb_repr *r, uint64_t descriptor,
				     struct prb_member *ret)
{
	uint64_t definition;
	bool end;

	if (!prb_repr_is(r, descriptor, "member_descriptor"))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it is no member");
	PRB_TRY(prb_repr_member(r, descriptor, 3, &definition));
	PRB_TRY(read_definition(r, definition, ret, &end));
	return end ? prb_repr_bad(descriptor, "a member without a name") : NULL;
}

static void put_integer(struct prb_str *text, int kind, const uint8_t *bytes)
{
	uint64_t word = 0;
	unsigned shift = 64 - 8 * widths[kind];

	memcpy(&word, bytes, widths[kind]);
	switch (kind) {
	case MEMBER_UBYTE:
	case MEMBER_USHORT:
	case MEMBER_UINT:
	case MEMBER_ULONG:
	case MEMBER_ULONGLONG:
		prb_str_printf(text, "%llu", (unsigned long long)word);
		return;
	default:
		prb_str_printf(text, "%lld", (long long)(int64_t)(word << shift) >> shift);
	}
}

static struct prb_error *put_cstr(struct prb_repr *r, uint64_t address, struct prb_str *text)
{
	char bytes[TEXT_BYTES];
	prb_auto_str struct prb_str raw = {};
	struct prb_str *out = r->out;

	PRB_TRY(prb_repr_cstr(r, address, bytes, sizeof(bytes)));
	prb_str_puts(&raw, bytes);
	r->out = text;

	struct prb_error *err = prb_repr_quote_raw(r, &raw);

	r->out = out;
	return err;
}

static struct prb_error *put_double(struct prb_repr *r, double value, struct prb_str *text)
{
	struct prb_str *out = r->out;

	r->out = text;
	prb_repr_put_double(r, value);
	r->out = out;
	return NULL;
}

static struct prb_error *put_number(struct prb_repr *r, int kind, const uint8_t *bytes,
				    struct prb_str *text)
{
	double number;
	float small;

	switch (kind) {
	case MEMBER_FLOAT:
		memcpy(&small, bytes, sizeof(small));
		return put_double(r, small, text);
	case MEMBER_DOUBLE:
		memcpy(&number, bytes, sizeof(number));
		return put_double(r, number, text);
	case MEMBER_BOOL:
		prb_str_puts(text, *bytes ? "True" : "False");
		return NULL;
	case MEMBER_CHAR:
		prb_str_printf(text, *bytes >= ' ' && *bytes < 0x7f ? "'%c'" : "'\\x%02x'", *bytes);
		return NULL;
	case MEMBER_NONE:
		prb_str_puts(text, "None");
		return NULL;
	default:
		put_integer(text, kind, bytes);
		return NULL;
	}
}

/* Where the value lies, within the object. */
static struct prb_error *place_of(struct prb_repr *r, uint64_t object,
				  const struct prb_member *member, uint64_t *ret)
{
	struct prb_type *type;
	uint64_t count, bytes;

	PRB_TRY(prb_repr_nameless_type_of(r, object, &type));
	*ret = member->offset;
	if (member->kind < 0 || (size_t)member->kind >= sizeof(widths) || !widths[member->kind] ||
	    !prb_inside(member->offset, widths[member->kind], (uint64_t)type->basicsize))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "'%s' lies in no known place",
					member->name);
	if (!member->after_items)
		return NULL;
	PRB_TRY(prb_repr_size(r, object, &count));
	if (!prb_mul(count, (uint64_t)type->itemsize, &bytes))
		return prb_repr_bad(object, "impossible size");
	*ret += (bytes + 7) & ~UINT64_C(7);
	return NULL;
}

struct prb_error *prb_repr_member_value(struct prb_repr *r, uint64_t object,
					const struct prb_member *member, uint64_t *ret,
					struct prb_str *text)
{
	uint64_t place, bytes = 0;

	*ret = 0;
	PRB_TRY(place_of(r, object, member, &place));
	if (member->kind == MEMBER_STRING_INPLACE)
		return put_cstr(r, object + place, text);
	PRB_TRY(prb_mem_read(r->mem, object + place, &bytes, widths[member->kind]));
	if (member->kind == MEMBER_OBJECT_EX && !bytes)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "'%s' is not set", member->name);
	if ((member->kind == MEMBER_OBJECT || member->kind == MEMBER_STRING) && !bytes) {
		prb_str_puts(text, "None");
		return NULL;
	}
	if (member->kind == MEMBER_STRING)
		return put_cstr(r, bytes, text);
	if (member->kind != MEMBER_OBJECT && member->kind != MEMBER_OBJECT_EX)
		return put_number(r, member->kind, (const uint8_t *)&bytes, text);
	*ret = bytes;
	return NULL;
}

const char *prb_repr_text_type(const char *text)
{
	if (*text == '<') /* <hidden> */
		return NULL;
	if (!strcmp(text, "None"))
		return "NoneType";
	if (!strcmp(text, "True") || !strcmp(text, "False"))
		return "bool";
	if (*text == '\'' || *text == '"')
		return "str";
	if (*text == 'b')
		return "bytes";
	return strpbrk(text, ".nf") ? "float" : "int";
}

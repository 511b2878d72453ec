/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builtin and extension types with a repr of their own that fit nowhere else. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

struct prb_error *prb_repr_handle_exception(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	uint64_t args, count;

	PRB_TRY(prb_repr_member(r, object, 1, &args));
	PRB_TRY(prb_repr_tuple(r, args, NULL, 0, &count));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	PRB_TRY(prb_repr_array(r, args + (uint64_t)r->layout->tuple_items, count));
	prb_str_puts(r->out, count == 1 && r->traits->exception_comma ? ",)" : ")");
	prb_repr_leave(r);
	return NULL;
}

/* Since 3.15 also with its name and path. */
struct prb_error *prb_repr_handle_import_error(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	enum { NAME = 8 }; /* words: 7 of any exception, message, name, path */
	static const char *const names[] = {"name", "path"};
	uint64_t values[2], args, count;

	PRB_TRY(prb_repr_member(r, object, 1, &args));
	PRB_TRY(prb_repr_tuple(r, args, NULL, 0, &count));
	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size + NAME * 8, 2, values));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	PRB_TRY(prb_repr_array(r, args + (uint64_t)r->layout->tuple_items, count));
	for (unsigned i = 0; i < 2; i++) {
		if (!values[i])
			continue;
		prb_str_printf(r->out, "%s%s=", count++ ? ", " : "", names[i]);
		PRB_TRY(prb_repr_object(r, values[i]));
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_memoryview(struct prb_repr *r, uint64_t object,
					     struct prb_type *type __attribute__((unused)))
{
	enum { RELEASED = 1 };
	uint64_t words[4]; /* size, managed buffer, hash, flags */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 4, words));
	prb_str_printf(r->out, "<%smemory at %#llx>", words[3] & RELEASED ? "released " : "",
		       (unsigned long long)object);
	return NULL;
}

/* The __name__ of what has one at a known place; 0 for others. */
static struct prb_error *find_name(struct prb_repr *r, uint64_t object, const struct prb_type *type,
				   uint64_t *ret)
{
	const struct prb_layout *l = r->layout;

	*ret = 0;
	if (prb_type_is(type, "function"))
		return prb_repr_word(r, object + (uint64_t)l->function_name, ret);
	if (type->flags & PRB_PY_TYPE && l->heap_type_name > 0) {
		struct prb_type *self;

		PRB_TRY(prb_repr_type(r, object, &self));
		if (self->flags & PRB_PY_HEAP_TYPE)
			return prb_repr_word(r, object + (uint64_t)l->heap_type_name, ret);
	}
	return NULL;
}

/* tp_name; since 3.13 "module.qualname", but for classes of __main__. */
static struct prb_error *put_class_of_target(struct prb_repr *r, const struct prb_type *type)
{
	size_t start = r->out->length;

	if (!r->traits->weakref_full || !(type->flags & PRB_PY_HEAP_TYPE)) {
		prb_str_puts(r->out, type->name);
		return NULL;
	}
	PRB_TRY(prb_repr_put_module(r, type));
	if (!r->out->failed && !strcmp(prb_str_text(r->out) + start, "__main__."))
		prb_str_truncate(r->out, start);
	return prb_repr_put_qualname(r, type);
}

struct prb_error *prb_repr_handle_weakref(struct prb_repr *r, uint64_t object,
					  struct prb_type *type __attribute__((unused)))
{
	uint64_t target, name;
	struct prb_type *its;

	PRB_TRY(prb_repr_member(r, object, 0, &target));
	prb_str_printf(r->out, "<weakref at %#llx; ", (unsigned long long)object);
	if (prb_repr_is_none(r, target)) {
		prb_str_puts(r->out, "dead>");
		return NULL;
	}
	PRB_TRY(prb_repr_type_of(r, target, &its));
	PRB_TRY(find_name(r, target, its, &name));
	prb_str_puts(r->out, "to '");
	PRB_TRY(put_class_of_target(r, its));
	prb_str_printf(r->out, "' at %#llx", (unsigned long long)target);
	if (name) {
		prb_str_puts(r->out, " (");
		PRB_TRY(prb_repr_put_text(r, name));
		prb_str_putc(r->out, ')');
	}
	prb_str_putc(r->out, '>');
	return NULL;
}

struct prb_error *prb_repr_handle_pattern(struct prb_repr *r, uint64_t object,
					  struct prb_type *type __attribute__((unused)))
{
	static const char *const names[] = {"TEMPLATE",	 "IGNORECASE", "LOCALE",
					    "MULTILINE", "DOTALL",     "UNICODE",
					    "VERBOSE",	 "DEBUG",      "ASCII"};
	enum { LOCALE = 4, UNICODE = 32, ASCII = 256 };
	uint64_t words[5]; /* groups, group index, index group, pattern, flags */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->var_size + 8, 5, words));

	uint32_t flags = (uint32_t)words[4];

	if ((flags & (LOCALE | UNICODE | ASCII)) == UNICODE && !prb_repr_is(r, words[3], "bytes"))
		flags &= ~(uint32_t)UNICODE;
	prb_str_puts(r->out, "re.compile(");
	PRB_TRY(prb_repr_object(r, words[3]));
	for (unsigned i = 0, count = 0; flags; i++) {
		if (!(flags & 1u << i))
			continue;
		prb_str_puts(r->out, count++ ? "|" : ", ");
		flags &= ~(1u << i);
		if (i < PRB_ARRAY_SIZE(names)) {
			prb_str_printf(r->out, "re.%s", names[i]);
		} else {
			prb_str_printf(r->out, "0x%x", flags | 1u << i);
			break;
		}
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

/* The n-th item is shown with the n-th name of tp_members, also where items lack names. */
static struct prb_error *put_field_name(struct prb_repr *r, const struct prb_type *type,
					uint64_t index)
{
	enum { MEMBER_BYTES = 40 };
	uint64_t members, text;
	char name[64];

	/* tp_members, tp_getset and tp_base follow each other in every version. */
	PRB_TRY(prb_repr_word(r, type->address + (uint64_t)r->layout->type_base - 16, &members));
	PRB_TRY(prb_repr_word(r, members + index * MEMBER_BYTES, &text));
	PRB_TRY(prb_repr_cstr(r, text, name, sizeof(name)));
	prb_str_printf(r->out, "%s=", name);
	return NULL;
}

/* A tuple of C with a repr of its own that is not known has no fields either. */
static struct prb_error *has_fields(struct prb_repr *r, const struct prb_type *type, bool *ret)
{
	uint64_t members;

	PRB_TRY(prb_repr_word(r, type->address + (uint64_t)r->layout->type_base - 16, &members));
	*ret = members;
	return NULL;
}

struct prb_error *prb_repr_handle_structseq(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	struct prb_items items = {.r = r};
	uint64_t item;
	bool fields;

	PRB_TRY(has_fields(r, type, &fields));
	if (!fields)
		return prb_repr_handle_default(r, object, type);
	PRB_TRY(prb_repr_size(r, object, &items.total));
	if (!prb_repr_enter(r, object, "(...)"))
		return NULL;
	prb_str_printf(r->out, "%s(", type->name);
	while (prb_items_next(&items)) {
		PRB_TRY(put_field_name(r, type, items.done - 1));
		PRB_TRY(prb_repr_word(
			r, object + (uint64_t)r->layout->tuple_items + (items.done - 1) * 8,
			&item));
		PRB_TRY(prb_repr_object(r, item));
	}
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

/* Prints one item of an array.array or of a buffer; false for a code we do not know. */
bool prb_repr_put_number(struct prb_repr *r, char code, const uint8_t *bytes)
{
	union {
		int8_t b;
		uint8_t B;
		int16_t h;
		uint16_t H;
		int32_t i;
		uint32_t I;
		int64_t q;
		uint64_t Q;
		float f;
		double d;
	} value;

	memcpy(&value, bytes, sizeof(value));
	switch (code) {
	case 'b':
		prb_str_printf(r->out, "%d", value.b);
		return true;
	case 'B':
		prb_str_printf(r->out, "%u", value.B);
		return true;
	case 'h':
		prb_str_printf(r->out, "%d", value.h);
		return true;
	case 'H':
		prb_str_printf(r->out, "%u", value.H);
		return true;
	case 'i':
		prb_str_printf(r->out, "%d", value.i);
		return true;
	case 'I':
		prb_str_printf(r->out, "%u", value.I);
		return true;
	case 'l':
	case 'q':
		prb_str_printf(r->out, "%lld", (long long)value.q);
		return true;
	case 'L':
	case 'Q':
		prb_str_printf(r->out, "%llu", (unsigned long long)value.Q);
		return true;
	case 'f':
		prb_repr_put_double(r, (double)value.f);
		return true;
	case 'd':
		prb_repr_put_double(r, value.d);
		return true;
	default:
		return false;
	}
}

static unsigned number_size(char code)
{
	return strchr("bB", code) ? 1 : strchr("hH", code) ? 2 : strchr("iIf", code) ? 4 : 8;
}

/* The end of an array of characters, which is printed as a str. */
static struct prb_error *put_characters(struct prb_repr *r, uint64_t address, uint64_t count)
{
	if (count) {
		prb_str_puts(r->out, ", ");
		PRB_TRY(prb_repr_quote_at(r, address, 4, count));
	}
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_handle_array(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_items items = {.r = r};
	uint64_t words[3]; /* items, allocated, description */
	uint8_t bytes[8] = {};
	uint8_t code;

	PRB_TRY(prb_repr_size(r, object, &items.total));
	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->var_size + 8, 3, words));
	PRB_TRY(prb_mem_read_u8(r->mem, words[2], &code));
	if (!code || !strchr("bBhHiIlLqQfduw", code))
		return prb_repr_handle_default(r, object, type);
	if (!prb_repr_enter(r, object, "[...]"))
		return NULL;
	PRB_TRY(prb_repr_put_kind(r, type, "array"));
	prb_str_printf(r->out, "('%c'", code);
	if (strchr("uw", code))
		return put_characters(r, words[0], items.total);
	if (items.total)
		prb_str_puts(r->out, ", [");
	while (prb_items_next(&items)) {
		unsigned size = number_size((char)code);

		PRB_TRY(prb_mem_read(r->mem, words[0] + (items.done - 1) * size, bytes, size));
		prb_repr_put_number(r, (char)code, bytes);
	}
	prb_str_puts(r->out, items.total ? "])" : ")");
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_handle_context_variable(struct prb_repr *r, uint64_t object,
						   struct prb_type *type __attribute__((unused)))
{
	uint64_t name, value;

	PRB_TRY(prb_repr_member(r, object, 0, &name));
	PRB_TRY(prb_repr_member(r, object, 1, &value));
	prb_str_puts(r->out, "<ContextVar name=");
	PRB_TRY(prb_repr_object(r, name));
	if (value) {
		prb_str_puts(r->out, " default=");
		PRB_TRY(prb_repr_object(r, value));
	}
	prb_str_printf(r->out, " at %#llx>", (unsigned long long)object);
	return NULL;
}

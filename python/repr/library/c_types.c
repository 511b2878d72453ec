/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Objects of small modules in C: itertools, operator, mmap, xml's elements, semaphores of
 * multiprocessing, contexts of decimal. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

static const char *short_name(const struct prb_type *type)
{
	const char *dot = strrchr(type->name, '.');

	return dot ? dot + 1 : type->name;
}

/* Its words: a count, and if that is not enough an object and the step. */
struct prb_error *prb_repr_handle_count(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t words[3];
	int64_t step = 0;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 3, words));
	prb_str_printf(r->out, "%s(", short_name(type));
	if (words[1])
		PRB_TRY(prb_repr_object(r, words[1]));
	else
		prb_str_printf(r->out, "%lld", (long long)words[0]);
	if (words[1] && prb_repr_is(r, words[2], "int")) {
		struct prb_error *err = prb_repr_int(r, words[2], &step);

		if (!prb_error_catch(&err, PRB_ERROR_BAD_DATA))
			PRB_TRY(err);
	}
	if (words[1] && step != 1) {
		prb_str_puts(r->out, ", ");
		PRB_TRY(prb_repr_object(r, words[2]));
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

/* An object and how often, or -1. */
struct prb_error *prb_repr_handle_repeat(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t words[2];

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	prb_str_printf(r->out, "%s(", short_name(type));
	PRB_TRY(prb_repr_object(r, words[0]));
	if ((int64_t)words[1] != -1)
		prb_str_printf(r->out, ", %lld", (long long)words[1]);
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

/* How many, and the item or a tuple of them. */
struct prb_error *prb_repr_handle_item_getter(struct prb_repr *r, uint64_t object,
					      struct prb_type *type)
{
	uint64_t words[2], count;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	prb_str_printf(r->out, "%s(", type->name);
	if (words[0] == 1) {
		PRB_TRY(prb_repr_object(r, words[1]));
	} else {
		PRB_TRY(prb_repr_tuple(r, words[1], NULL, 0, &count));
		PRB_TRY(prb_repr_array(r, words[1] + (uint64_t)r->layout->tuple_items, count));
	}
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

/* A name, or a tuple of the names that dots had divided. */
static struct prb_error *put_dotted(struct prb_repr *r, uint64_t name)
{
	enum { PARTS = 32, CHARACTERS = 200 };
	prb_auto_str struct prb_str text = {};
	uint64_t parts[PARTS], count;

	if (!prb_repr_is(r, name, "tuple"))
		return prb_repr_object(r, name);
	PRB_TRY(prb_repr_tuple(r, name, parts, PARTS, &count));
	for (uint64_t i = 0; i < PRB_MIN(count, (uint64_t)PARTS); i++) {
		prb_auto_str struct prb_str part = {};

		PRB_TRY(prb_repr_raw_text(r, parts[i], CHARACTERS, &part));
		if (i)
			prb_str_putc(&text, '.');
		prb_str_append(&text, prb_str_text(&part), part.length);
	}
	return prb_repr_quote_raw(r, &text);
}

struct prb_error *prb_repr_handle_attribute_getter(struct prb_repr *r, uint64_t object,
						   struct prb_type *type)
{
	struct prb_items items = {.r = r};
	uint64_t words[2], name;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	PRB_TRY(prb_repr_tuple(r, words[1], NULL, 0, &items.total));
	prb_str_printf(r->out, "%s(", type->name);
	while (prb_items_next(&items)) {
		PRB_TRY(prb_repr_word(
			r, words[1] + (uint64_t)r->layout->tuple_items + (items.done - 1) * 8,
			&name));
		PRB_TRY(put_dotted(r, name));
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

/* Name, arguments, keywords. */
struct prb_error *prb_repr_handle_method_caller(struct prb_repr *r, uint64_t object,
						struct prb_type *type)
{
	uint64_t words[3], count;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 3, words));
	PRB_TRY(prb_repr_tuple(r, words[1], NULL, 0, &count));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	prb_str_puts(r->out, type->name);
	PRB_TRY(prb_repr_put_call(r, words, count));
	prb_repr_leave(r);
	return NULL;
}

/* Data, size, position, offset in the file. */
struct prb_error *prb_repr_handle_mmap(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t words[4];

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 4, words));
	if (!words[0])
		prb_str_printf(r->out, "<%s closed=True>", type->name);
	else
		prb_str_printf(r->out, "<%s closed=False, length=%llu, pos=%llu, offset=%lld>",
			       type->name, (unsigned long long)words[1],
			       (unsigned long long)words[2], (long long)words[3]);
	return NULL;
}

/* Size, count, codes, the format as bytes. */
struct prb_error *prb_repr_handle_struct(struct prb_repr *r, uint64_t object,
					 struct prb_type *type __attribute__((unused)))
{
	enum { FORMAT = 3 };
	uint64_t format;
	size_t start;

	PRB_TRY(prb_repr_member(r, object, FORMAT, &format));
	prb_str_puts(r->out, "Struct(");
	start = r->out->length;
	PRB_TRY(prb_repr_object(r, format));
	if (!r->out->failed && prb_repr_is(r, format, "bytes"))
		prb_str_remove(r->out, start, 1); /* the b of the literal */
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_xml_element(struct prb_repr *r, uint64_t object,
					      struct prb_type *type __attribute__((unused)))
{
	uint64_t tag;

	PRB_TRY(prb_repr_member(r, object, 0, &tag));
	prb_str_puts(r->out, "<Element ");
	PRB_TRY(prb_repr_object(r, tag));
	prb_str_printf(r->out, " at %#llx>", (unsigned long long)object);
	return NULL;
}

/* Its words: the semaphore of libc, the thread that has it, how often and at most, kind, name.
 * Where processes share it, its value is what all of them see. */
struct prb_error *prb_repr_handle_semlock(struct prb_repr *r, uint64_t object,
					  struct prb_type *type)
{
	enum { HANDLE, OWNER, COUNT, KIND, NAME, WORDS, NAME_BYTES = 128, VALUE = 0x7fffffff };
	char name[NAME_BYTES] = "";
	uint64_t words[WORDS];
	uint32_t value;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, WORDS, words));
	PRB_TRY(prb_mem_read_u32(r->mem, words[HANDLE], &value));
	prb_str_printf(r->out, "<%s value=%u maxvalue=%u", type->name, value & VALUE,
		       (unsigned)(words[COUNT] >> 32));
	if ((uint32_t)words[COUNT])
		prb_str_printf(r->out, " count=%u owner=%llu", (unsigned)words[COUNT],
			       (unsigned long long)words[OWNER]);
	if (words[NAME]) {
		prb_auto_str struct prb_str text = {};

		PRB_TRY(prb_repr_cstr(r, words[NAME], name, sizeof(name)));
		prb_str_puts(&text, name);
		prb_str_puts(r->out, " name=");
		PRB_TRY(prb_repr_quote_raw(r, &text));
	}
	prb_str_putc(r->out, '>');
	return NULL;
}

/* Signals of libmpdec by their bits; several are one for Python. */
static void put_signals(struct prb_repr *r, uint32_t bits)
{
	static const char invalid[] = "InvalidOperation";
	static const char *const names[] = {
		"Clamped",	  invalid,    "DivisionByZero", invalid,     invalid,
		invalid,	  "Inexact",  invalid,		invalid,     invalid,
		"FloatOperation", "Overflow", "Rounded",	"Subnormal", "Underflow",
	};
	unsigned shown = 0;
	bool done = false;

	prb_str_putc(r->out, '[');
	for (unsigned i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		if (!(bits & 1u << i) || (names[i] == invalid && done))
			continue;
		done |= names[i] == invalid;
		prb_str_printf(r->out, "%s%s", shown++ ? ", " : "", names[i]);
	}
	prb_str_putc(r->out, ']');
}

struct prb_error *prb_repr_handle_decimal_context(struct prb_repr *r, uint64_t object,
						  struct prb_type *type __attribute__((unused)))
{
	static const char *const roundings[] = {"UP",	   "DOWN",	"CEILING",   "FLOOR",
						"HALF_UP", "HALF_DOWN", "HALF_EVEN", "05UP"};
	struct {
		int64_t precision, highest, lowest;
		uint32_t traps, status, new_trap;
		int32_t rounding, clamp, all;
		uint64_t objects[2]; /* of the traps and of the flags */
		int32_t capitals;
	} context;

	PRB_TRY(prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size, &context,
			     sizeof(context)));
	if (context.rounding < 0 || (size_t)context.rounding >= PRB_ARRAY_SIZE(roundings))
		return prb_repr_bad(object, "not a context");
	prb_str_printf(
		r->out,
		"Context(prec=%lld, rounding=ROUND_%s, Emin=%lld, Emax=%lld, capitals=%d, clamp=%d",
		(long long)context.precision, roundings[context.rounding],
		(long long)context.lowest, (long long)context.highest, context.capitals,
		context.clamp);
	prb_str_puts(r->out, ", flags=");
	put_signals(r, context.status);
	prb_str_puts(r->out, ", traps=");
	put_signals(r, context.traps);
	prb_str_putc(r->out, ')');
	return NULL;
}

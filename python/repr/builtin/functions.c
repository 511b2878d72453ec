/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Callables and code: functions, methods, descriptors, code, cells, generators. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

enum { NAME_SIZE = 256 };

/* " at 0x…>" */
static void put_address(struct prb_repr *r, uint64_t object)
{
	prb_str_printf(r->out, " at %#llx>", (unsigned long long)object);
}

static struct prb_error *put_text_at(struct prb_repr *r, uint64_t object, int32_t offset)
{
	uint64_t text;

	PRB_TRY(prb_repr_word(r, object + (uint64_t)offset, &text));
	return prb_repr_put_text(r, text);
}

struct prb_error *prb_repr_handle_function(struct prb_repr *r, uint64_t object,
					   struct prb_type *type __attribute__((unused)))
{
	prb_str_puts(r->out, "<function ");
	PRB_TRY(put_text_at(r, object, r->layout->function_qualname));
	put_address(r, object);
	return NULL;
}

/* tp_name of the type of an object. */
static struct prb_error *put_type_of(struct prb_repr *r, uint64_t object)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	prb_str_puts(r->out, type->name);
	return NULL;
}

static struct prb_error *builtin_name(struct prb_repr *r, uint64_t object, char ret[NAME_SIZE])
{
	uint64_t definition, name;

	PRB_TRY(prb_repr_member(r, object, 0, &definition));
	PRB_TRY(prb_repr_word(r, definition, &name));
	return prb_repr_cstr(r, name, ret, NAME_SIZE);
}

struct prb_error *prb_repr_handle_builtin(struct prb_repr *r, uint64_t object,
					  struct prb_type *type __attribute__((unused)))
{
	char text[NAME_SIZE];
	uint64_t self;

	PRB_TRY(builtin_name(r, object, text));
	PRB_TRY(prb_repr_member(r, object, 1, &self));
	if (!self || prb_repr_is(r, self, "module")) {
		prb_str_printf(r->out, "<built-in function %s>", text);
		return NULL;
	}
	prb_str_printf(r->out, "<built-in method %s of ", text);
	PRB_TRY(put_type_of(r, self));
	prb_str_puts(r->out, " object");
	put_address(r, self);
	return NULL;
}

struct prb_error *prb_repr_handle_method(struct prb_repr *r, uint64_t object,
					 struct prb_type *type __attribute__((unused)))
{
	char text[NAME_SIZE] = "?";
	uint64_t words[2]; /* function, self */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	prb_str_puts(r->out, "<bound method ");
	if (r->traits->method_class) {
		PRB_TRY(put_type_of(r, words[1]));
		prb_str_putc(r->out, '.');
	}
	if (prb_repr_is(r, words[0], "function"))
		PRB_TRY(put_text_at(r, words[0],
				    r->traits->method_class ? r->layout->function_name
							    : r->layout->function_qualname));
	else if (prb_repr_is(r, words[0], "builtin_function_or_method"))
		PRB_TRY(builtin_name(r, words[0], text));
	if (!prb_repr_is(r, words[0], "function"))
		prb_str_puts(r->out, text);
	prb_str_puts(r->out, " of ");
	PRB_TRY(prb_repr_object(r, words[1]));
	prb_str_putc(r->out, '>');
	return NULL;
}

/* Descriptors begin with the type that they belong to and their name. */
static struct prb_error *put_descriptor(struct prb_repr *r, uint64_t object, const char *kind)
{
	uint64_t words[2];
	struct prb_type *owner;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	PRB_TRY(prb_repr_type(r, words[0], &owner));
	prb_str_printf(r->out, "<%s '", kind);
	PRB_TRY(prb_repr_put_text(r, words[1]));
	prb_str_printf(r->out, "' of '%s' objects>", owner->name);
	return NULL;
}

struct prb_error *prb_repr_handle_method_descriptor(struct prb_repr *r, uint64_t object,
						    struct prb_type *type __attribute__((unused)))
{
	return put_descriptor(r, object, "method");
}

struct prb_error *prb_repr_handle_slot_wrapper(struct prb_repr *r, uint64_t object,
					       struct prb_type *type __attribute__((unused)))
{
	return put_descriptor(r, object, "slot wrapper");
}

struct prb_error *prb_repr_handle_getset(struct prb_repr *r, uint64_t object,
					 struct prb_type *type __attribute__((unused)))
{
	return put_descriptor(r, object, "attribute");
}

struct prb_error *prb_repr_handle_member(struct prb_repr *r, uint64_t object,
					 struct prb_type *type __attribute__((unused)))
{
	return put_descriptor(r, object, "member");
}

struct prb_error *prb_repr_handle_method_wrapper(struct prb_repr *r, uint64_t object,
						 struct prb_type *type __attribute__((unused)))
{
	uint64_t words[2]; /* descriptor, self */
	uint64_t name;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	PRB_TRY(prb_repr_member(r, words[0], 1, &name));
	prb_str_puts(r->out, "<method-wrapper '");
	PRB_TRY(prb_repr_put_text(r, name));
	prb_str_puts(r->out, "' of ");
	PRB_TRY(put_type_of(r, words[1]));
	prb_str_puts(r->out, " object");
	put_address(r, words[1]);
	return NULL;
}

/* staticmethod and classmethod, since 3.10. */
struct prb_error *prb_repr_handle_wrapped(struct prb_repr *r, uint64_t object,
					  struct prb_type *type)
{
	uint64_t callable;

	PRB_TRY(prb_repr_member(r, object, 0, &callable));
	prb_str_printf(r->out, "<%s(", type->name);
	PRB_TRY(prb_repr_object(r, callable));
	prb_str_puts(r->out, ")>");
	return NULL;
}

struct prb_error *prb_repr_put_call(struct prb_repr *r, const uint64_t words[3], uint64_t count)
{
	uint64_t keywords = 0;

	prb_str_putc(r->out, '(');
	PRB_TRY(prb_repr_object(r, words[0]));
	if (count) {
		prb_str_puts(r->out, ", ");
		PRB_TRY(prb_repr_array(r, words[1] + (uint64_t)r->layout->tuple_items, count));
	}
	if (words[2] && !prb_repr_is_none(r, words[2]))
		PRB_TRY(prb_repr_dict_size(r, words[2], &keywords));
	if (keywords) {
		prb_str_puts(r->out, ", ");
		PRB_TRY(prb_repr_put_fields(r, words[2]));
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_partial(struct prb_repr *r, uint64_t object,
					  struct prb_type *type)
{
	uint64_t words[3], count; /* function, arguments, keywords */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 3, words));
	PRB_TRY(prb_repr_tuple(r, words[1], NULL, 0, &count));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	if (type->flags & PRB_PY_HEAP_TYPE)
		PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(type->flags & PRB_PY_HEAP_TYPE ? prb_repr_put_qualname(r, type)
					       : put_type_of(r, object));
	PRB_TRY(prb_repr_put_call(r, words, count));
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_handle_code(struct prb_repr *r, uint64_t object,
				       struct prb_type *type __attribute__((unused)))
{
	const struct prb_layout *l = r->layout;
	uint32_t line;

	PRB_TRY(prb_mem_read_u32(r->mem, object + (uint64_t)l->code_firstlineno, &line));
	prb_str_puts(r->out, "<code object ");
	PRB_TRY(put_text_at(r, object, l->code_name));
	prb_str_printf(r->out, " at %#llx, file \"", (unsigned long long)object);
	PRB_TRY(put_text_at(r, object, l->code_filename));
	prb_str_printf(r->out, "\", line %d>", line ? (int)line : -1);
	return NULL;
}

struct prb_error *prb_repr_handle_cell(struct prb_repr *r, uint64_t object,
				       struct prb_type *type __attribute__((unused)))
{
	uint64_t content;

	PRB_TRY(prb_repr_member(r, object, 0, &content));
	prb_str_printf(r->out, "<cell at %#llx: ", (unsigned long long)object);
	if (!content) {
		prb_str_puts(r->out, "empty>");
		return NULL;
	}
	PRB_TRY(put_type_of(r, content));
	prb_str_puts(r->out, " object");
	put_address(r, content);
	return NULL;
}

/* generator, coroutine, async_generator: they begin alike. */
struct prb_error *prb_repr_handle_generator(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	const struct prb_layout *l = r->layout;
	uint64_t code;

	prb_str_printf(r->out, "<%s object ", type->name);
	if (l->generator_qualname >= 0) {
		PRB_TRY(put_text_at(r, object, l->generator_qualname));
	} else {
		PRB_TRY(prb_repr_word(r, object + (uint64_t)l->generator_code, &code));
		PRB_TRY(put_text_at(r, code, l->code_name));
	}
	prb_str_printf(r->out, " at %#llx", (unsigned long long)object);
	PRB_TRY(prb_repr_put_suspension(r, object));
	prb_str_putc(r->out, '>');
	return NULL;
}

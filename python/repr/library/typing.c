/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the module typing has: types with parameters (typing.List[int]), special forms, variables
 * (~T), references by name, new types. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

/* An attribute, 0 if there is none. */
static struct prb_error *find(struct prb_repr *r, uint64_t object, const char *name, uint64_t *ret)
{
	struct prb_error *err = prb_repr_attribute(r, object, name, ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		*ret = 0;
	return err;
}

/* Whether an attribute, or a member of C, is True. */
static struct prb_error *is_set(struct prb_repr *r, uint64_t object, const char *name, bool *ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_member member;
	uint64_t value, found;
	struct prb_type *type;
	int64_t number = 0;

	*ret = false;
	PRB_TRY(find(r, object, name, &value));
	if (value) {
		if (prb_repr_is(r, value, "bool"))
			PRB_TRY(prb_repr_int(r, value, &number));
		*ret = number;
		return NULL;
	}
	PRB_TRY(prb_repr_type_of(r, object, &type));

	struct prb_error *err = prb_repr_lookup(r, type, name, &found, NULL);

	if (!err)
		err = prb_repr_member_of(r, found, &member);
	if (!err)
		err = prb_repr_member_value(r, object, &member, &value, &text);
	*ret = !err && !strcmp(prb_str_text(&text), "True");
	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? NULL : err;
}

/* Its own name, or that of what it was made from. */
static struct prb_error *put_origin(struct prb_repr *r, uint64_t object)
{
	uint64_t name, origin;

	PRB_TRY(find(r, object, "_name", &name));
	if (name && !prb_repr_is_none(r, name)) {
		prb_str_puts(r->out, "typing.");
		return prb_repr_put_text(r, name);
	}
	PRB_TRY(prb_repr_attribute(r, object, "__origin__", &origin));
	return prb_repr_put_parameter(r, origin);
}

/* The items of a tuple from @p first on, but @p left_out at its end. */
static struct prb_error *put_parameters(struct prb_repr *r, uint64_t tuple, uint64_t left_out)
{
	struct prb_items items = {.r = r};
	uint64_t item;

	PRB_TRY(prb_repr_tuple(r, tuple, NULL, 0, &items.total));
	items.total -= PRB_MIN(items.total, left_out);
	while (prb_items_next(&items)) {
		PRB_TRY(prb_repr_word(
			r, tuple + (uint64_t)r->layout->tuple_items + (items.done - 1) * 8, &item));
		PRB_TRY(prb_repr_put_parameter(r, item));
	}
	return NULL;
}

static bool is_none_type(struct prb_repr *r, uint64_t object)
{
	struct prb_type *self;
	prb_auto_error struct prb_error *err = prb_repr_type(r, object, &self);

	return !err && prb_type_is(self, "NoneType");
}

/* Optional[X] is the union of X and None; up to 3.8 it shows as that. */
static struct prb_error *put_optional(struct prb_repr *r, uint64_t arguments, bool *done)
{
	uint64_t pair[2], count;

	*done = false;
	PRB_TRY(prb_repr_tuple(r, arguments, pair, 2, &count));
	if (count != 2 || (!is_none_type(r, pair[0]) && !is_none_type(r, pair[1])))
		return NULL;
	*done = true;
	prb_str_puts(r->out, "typing.Optional[");
	PRB_TRY(prb_repr_put_parameter(r, pair[is_none_type(r, pair[0])]));
	prb_str_putc(r->out, ']');
	return NULL;
}

/* Arguments in brackets of their own, then the result; *done is false for those that are "...". */
static struct prb_error *put_callable(struct prb_repr *r, uint64_t arguments, const char *name,
				      bool *done)
{
	uint64_t first, last, count;
	struct prb_type *type;

	*done = false;
	PRB_TRY(prb_repr_tuple(r, arguments, &first, 1, &count));
	if (!count)
		return NULL;
	PRB_TRY(prb_repr_type_of(r, first, &type));
	if (count == 2 && (prb_type_is(type, "ellipsis") || strstr(type->name, "ParamSpec") ||
			   strstr(type->name, "_ConcatenateGenericAlias")))
		return NULL;
	*done = true;
	PRB_TRY(prb_repr_word(r, arguments + (uint64_t)r->layout->tuple_items + (count - 1) * 8,
			      &last));
	prb_str_printf(r->out, "%s[[", name);
	PRB_TRY(put_parameters(r, arguments, 1));
	prb_str_puts(r->out, "], ");
	PRB_TRY(prb_repr_put_parameter(r, last));
	prb_str_putc(r->out, ']');
	return NULL;
}

/* Those with a form of their own, by the class of the alias and what it is made from. */
static struct prb_error *put_special(struct prb_repr *r, uint64_t object,
				     const struct prb_type *type, uint64_t arguments, bool *done)
{
	bool callable = strstr(type->name, "_CallableGenericAlias");
	uint64_t name;

	*done = false;
	if (strstr(type->name, "_UnionGenericAlias"))
		return put_optional(r, arguments, done);
	PRB_TRY(find(r, object, "_name", &name));
	if (!callable && name && !prb_repr_is_none(r, name))
		PRB_TRY(prb_repr_text_is(r, name, "Callable", &callable));
	return callable ? put_callable(r, arguments, "typing.Callable", done) : NULL;
}

struct prb_error *prb_repr_handle_typing_alias(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	uint64_t arguments, count;
	bool special = false, done = false;

	PRB_TRY(find(r, object, "__args__", &arguments));
	if (arguments && !prb_repr_is(r, arguments, "tuple"))
		return prb_repr_bad(object, "its arguments are no tuple");
	/* Up to 3.8, List alone has the arguments that it would have. */
	PRB_TRY(is_set(r, object, "_special", &special));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	if (arguments && !special)
		PRB_TRY(put_special(r, object, type, arguments, &done));
	if (!done)
		PRB_TRY(put_origin(r, object));
	if (!done && arguments && !special) {
		PRB_TRY(prb_repr_tuple(r, arguments, NULL, 0, &count));
		prb_str_puts(r->out, count ? "[" : "[()");
		PRB_TRY(put_parameters(r, arguments, 0));
		prb_str_putc(r->out, ']');
	}
	prb_repr_leave(r);
	return NULL;
}

/* Of collections.abc: an alias of C with one method in Python. */
struct prb_error *prb_repr_handle_abc_callable(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	uint64_t arguments;
	bool done;

	PRB_TRY(prb_repr_member(r, object, 1, &arguments));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(put_callable(r, arguments, "collections.abc.Callable", &done));
	prb_repr_leave(r);
	return done ? NULL : prb_repr_handle_generic_alias(r, object, type);
}

struct prb_error *prb_repr_handle_annotated(struct prb_repr *r, uint64_t object,
					    struct prb_type *type __attribute__((unused)))
{
	uint64_t origin, metadata, count;

	PRB_TRY(prb_repr_attribute(r, object, "__origin__", &origin));
	PRB_TRY(prb_repr_attribute(r, object, "__metadata__", &metadata));
	PRB_TRY(prb_repr_tuple(r, metadata, NULL, 0, &count));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	prb_str_puts(r->out, "typing.Annotated[");
	PRB_TRY(prb_repr_put_parameter(r, origin));
	prb_str_puts(r->out, ", ");
	PRB_TRY(prb_repr_array(r, metadata + (uint64_t)r->layout->tuple_items, count));
	prb_str_putc(r->out, ']');
	prb_repr_leave(r);
	return NULL;
}

/* A star in 3.11. */
struct prb_error *prb_repr_handle_unpack(struct prb_repr *r, uint64_t object,
					 struct prb_type *type __attribute__((unused)))
{
	enum { STARRED = 0x030b };
	bool starred = r->layout->version == STARRED;
	uint64_t arguments, first, count;

	PRB_TRY(prb_repr_attribute(r, object, "__args__", &arguments));
	PRB_TRY(prb_repr_tuple(r, arguments, &first, 1, &count));
	if (count != 1)
		return prb_repr_bad(object, "it unpacks nothing");
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	prb_str_puts(r->out, starred ? "*" : "typing.Unpack[");
	PRB_TRY(prb_repr_put_parameter(r, first));
	prb_str_puts(r->out, starred ? "" : "]");
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_handle_special_form(struct prb_repr *r, uint64_t object,
					       struct prb_type *type __attribute__((unused)))
{
	uint64_t name;

	PRB_TRY(prb_repr_attribute(r, object, "_name", &name));
	prb_str_puts(r->out, "typing.");
	return prb_repr_put_text(r, name);
}

/* TypeVar, ParamSpec, TypeVarTuple, TypeAliasType. */
struct prb_error *prb_repr_handle_type_variable(struct prb_repr *r, uint64_t object,
						struct prb_type *type)
{
	bool varies = !strstr(type->name, "Tuple") && !strstr(type->name, "Alias");
	bool inferred = false, covariant = false, contravariant = false;
	uint64_t name;

	PRB_TRY(prb_repr_attribute(r, object, "__name__", &name));
	if (varies) {
		PRB_TRY(is_set(r, object, "__infer_variance__", &inferred));
		PRB_TRY(is_set(r, object, "__covariant__", &covariant));
		PRB_TRY(is_set(r, object, "__contravariant__", &contravariant));
	}
	if (varies && !inferred)
		prb_str_putc(r->out, covariant ? '+' : contravariant ? '-' : '~');
	return prb_repr_put_text(r, name);
}

struct prb_error *prb_repr_handle_forward_ref(struct prb_repr *r, uint64_t object,
					      struct prb_type *type __attribute__((unused)))
{
	uint64_t text, module;

	PRB_TRY(find(r, object, "__forward_arg__", &text));
	if (!text) /* 3.14 */
		PRB_TRY(prb_repr_attribute(r, object, "__arg__", &text));
	PRB_TRY(find(r, object, "__forward_module__", &module));
	prb_str_puts(r->out, "ForwardRef(");
	PRB_TRY(prb_repr_object(r, text));
	if (module && !prb_repr_is_none(r, module)) {
		prb_str_puts(r->out, ", module=");
		PRB_TRY(prb_repr_object(r, module));
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_new_type(struct prb_repr *r, uint64_t object,
					   struct prb_type *type __attribute__((unused)))
{
	uint64_t module, name;

	PRB_TRY(prb_repr_attribute(r, object, "__module__", &module));
	PRB_TRY(prb_repr_attribute(r, object, "__qualname__", &name));
	PRB_TRY(prb_repr_put_text(r, module));
	prb_str_putc(r->out, '.');
	return prb_repr_put_text(r, name);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Objects that have no other form: the name of the class and the attributes, each as short as it
 * can be understood. Their number is unknown before all were visited, so attributes beyond the
 * limits are only counted.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

/* Limits of attributes, which are shorter than single values. */
enum { ITEMS = 5, TEXT = 60, COUNTED = 10000 };

struct list {
	struct prb_repr *r;
	const char *chosen; /* the only ones that are shown, divided by blanks; NULL: all */
	unsigned shown, more;
	struct prb_error *err;
};

static bool is_chosen(const char *chosen, const char *name)
{
	size_t length = strlen(name), word;

	for (; chosen && *chosen; chosen += word + strspn(chosen + word, " ")) {
		word = strcspn(chosen, " ");
		if (word == length && !memcmp(chosen, name, length))
			return true;
	}
	return !chosen;
}

static bool put_attribute(void *context, const struct prb_attribute *a)
{
	struct list *list = context;
	struct prb_repr *r = list->r;

	/* Names that Python adds itself. */
	if (!*a->name || !strncmp(a->name, "__", 2) || !is_chosen(list->chosen, a->name))
		return true;
	if (list->shown >= r->max.max_attributes || !prb_repr_room(r))
		return ++list->more < COUNTED;
	list->shown++;
	prb_str_putc(r->out, ' ');
	prb_str_puts(r->out, a->name);
	prb_str_putc(r->out, '=');
	if (a->text)
		prb_str_puts(r->out, a->text);
	else
		list->err = prb_repr_object(r, a->object);
	return !list->err;
}

static void shorten(struct prb_repr_options *max)
{
	if (max->long_attributes)
		return;
	max->max_items = PRB_MIN(max->max_items, (unsigned)ITEMS);
	max->max_text = PRB_MIN(max->max_text, (unsigned)TEXT);
}

static struct prb_error *put_attributes(struct prb_repr *r, uint64_t object, unsigned kinds,
					struct list *list)
{
	struct prb_repr_options max = r->max;
	bool torn = r->torn;
	struct prb_error *err;

	r->torn = false;
	shorten(&r->max);
	err = prb_repr_attributes(r, object, kinds, put_attribute, list);
	r->max = max;
	if (list->err) {
		prb_error_destroy(err);
		err = prb_steal(&list->err);
	}
	/* The readable part is shown. */
	if (prb_error_catch(&err, PRB_ERROR_FAULT) || prb_error_catch(&err, PRB_ERROR_BAD_DATA))
		r->torn = true;
	if (r->torn && list->shown)
		prb_str_puts(r->out, " …unreadable");
	r->torn |= torn;
	return err;
}

/* Not object.__repr__(), which shows no more than an address. */
static bool own_repr(struct prb_repr *r, const struct prb_type *type)
{
	struct prb_type *owner;
	uint64_t found = 0;
	prb_auto_error struct prb_error *err = prb_repr_lookup(r, type, "__repr__", &found, &owner);

	return !err && prb_repr_is(r, found, "function");
}

/* Of a named tuple. */
static bool has_names(struct prb_repr *r, const struct prb_type *type)
{
	uint64_t fields = 0, count;
	prb_auto_error struct prb_error *err = prb_repr_lookup(r, type, "_fields", &fields, NULL);

	if (!err)
		err = prb_repr_tuple(r, fields, NULL, 0, &count);
	return !err;
}

/* Of the plain type that a class is derived from, or NULL. */
static struct prb_error *find_plain(struct prb_repr *r, const struct prb_type *type,
				    prb_repr_handler **ret)
{
	static const char *const plain[] = {"dict",	     "list",	      "tuple",
					    "str",	     "bytes",	      "int",
					    "float",	     "set",	      "frozenset",
					    "numpy.ndarray", "datetime.date", "datetime.datetime",
					    "datetime.time"};
	struct prb_type *base;

	*ret = NULL;
	if (!(type->flags & PRB_PY_HEAP_TYPE) || !type->base)
		return NULL;
	PRB_TRY(prb_repr_type(r, type->base, &base));
	for (int i = 0; i < PRB_MRO_MAX && base->flags & PRB_PY_HEAP_TYPE && base->base; i++)
		PRB_TRY(prb_repr_type(r, base->base, &base));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(plain); i++)
		if (prb_type_is(base, plain[i]))
			*ret = prb_repr_c_handler(plain[i]);
	return NULL;
}

bool prb_repr_is_derived(struct prb_repr *r, const struct prb_type *type)
{
	prb_repr_handler *handler = NULL;
	prb_auto_error struct prb_error *err = find_plain(r, type, &handler);

	return !err && handler && handler == type->handler;
}

/*
 * Puts an object of a class derived from a plain type as that type: only the class's repr()
 * differs.
 */
static struct prb_error *put_plain(struct prb_repr *r, uint64_t object, struct prb_type *type,
				   bool *ret)
{
	prb_repr_handler *handler;
	size_t start = r->out->length;
	unsigned depth = r->depth;
	struct prb_error *err;

	*ret = false;
	PRB_TRY(find_plain(r, type, &handler));
	if (!handler || (!r->max.whole && !own_repr(r, type)))
		return NULL;
	if (handler == prb_repr_handle_tuple && has_names(r, type))
		handler = prb_repr_handle_namedtuple;
	prb_str_putc(r->out, ' ');
	err = handler(r, object, type);
	*ret = !err;
	if (prb_error_catch(&err, PRB_ERROR_FAULT) || prb_error_catch(&err, PRB_ERROR_BAD_DATA)) {
		prb_str_truncate(r->out, start);
		r->depth = depth;
	}
	return err;
}

/* How deep the object lies, as max_objects counts it. */
static unsigned level(const struct prb_repr *r)
{
	uint64_t around = r->depth < PRB_REPR_NEST ? (UINT64_C(1) << r->depth) - 1 : UINT64_MAX;

	return r->max.objects_alone ? (unsigned)__builtin_popcountll(r->instances & around)
				    : r->depth;
}

struct prb_error *prb_repr_handle_default(struct prb_repr *r, uint64_t object,
					  struct prb_type *type)
{
	struct list list = {.r = r, .chosen = prb_repr_chosen(r, type)};
	bool plain;

	/* Its metaclass may print it by code of its own, but it is a class. */
	if (type->flags & PRB_PY_TYPE)
		return prb_repr_handle_type(r, object, type);
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	PRB_TRY(put_plain(r, object, type, &plain));
	if (level(r) < r->max.max_objects && prb_repr_enter(r, object, NULL)) {
		r->instances |= UINT64_C(1) << (r->depth - 1);
		PRB_TRY(put_attributes(r, object, PRB_ATTRIBUTE_DICT | PRB_ATTRIBUTE_SLOT, &list));
		prb_repr_leave(r);
	}
	if (!list.shown && !plain)
		prb_str_printf(r->out, " object at %#llx", (unsigned long long)object);
	if (list.more)
		prb_str_printf(r->out, " …+%u", list.more);
	prb_str_putc(r->out, '>');
	return NULL;
}

struct prb_error *prb_repr_put_variables(struct prb_repr *r, uint64_t object)
{
	struct list list = {.r = r};

	if (!prb_repr_enter(r, object, NULL))
		return NULL;
	PRB_TRY(put_attributes(r, object, PRB_ATTRIBUTE_LOCAL, &list));
	prb_repr_leave(r);
	if (list.more)
		prb_str_printf(r->out, " …+%u", list.more);
	return NULL;
}

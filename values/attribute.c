/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An attribute of an object, found as object.__getattribute__ does: a data descriptor of its
 * classes, what the instance has, what else its classes have. Where code would run, that is said.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/expression_private.h"

struct prb_error *prb_search_needs_code(const struct prb_search *s, const char *format, ...)
{
	prb_auto_str struct prb_str what = {};
	va_list args;

	va_start(args, format);
	prb_str_vprintf(&what, format, args);
	va_end(args);
	if (s->needs_code)
		*s->needs_code = true;
	return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s: %s, which is not run",
					       s->looked_into, s->from, prb_str_text(&what)),
			      "'probing PID eval CODE' runs code in the process; it sees what is "
			      "global");
}

static struct prb_error *walk_mro(struct prb_search *s, const struct prb_type *type,
				  const char *name, uint64_t *ret, const struct prb_type **owner)
{
	uint64_t mro[PRB_MRO_MAX], dict;
	size_t count;

	*ret = 0;
	PRB_TRY(prb_repr_mro(s->r, type, mro, &count));
	for (size_t i = 0; i < count; i++) {
		struct prb_type *class;

		PRB_TRY(prb_repr_type(s->r, mro[i], &class));
		PRB_TRY(prb_repr_class_dict(s->r, class, &dict));
		if (!dict)
			continue;

		struct prb_error *err = prb_repr_dict_get(s->r, dict, name, ret);

		*owner = class;
		if (!err)
			return NULL;
		if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			return err;
	}
	*ret = 0;
	*owner = NULL;
	return NULL;
}

/* The entry that the name of the class has, or would have; NULL: it is not cached. */
static struct prb_class_cached *cached(struct prb_class_cache *cache, uint64_t type,
				       const char *name)
{
	uint64_t hash = type >> 4;
	size_t length = 0;

	if (!cache)
		return NULL;
	for (; name[length]; length++)
		hash = (hash ^ (unsigned char)name[length]) * UINT64_C(0x100000001b3);
	return length < PRB_CLASS_CACHE_NAME ? &cache->entries[hash % PRB_CLASS_CACHE_SIZE] : NULL;
}

struct prb_error *prb_search_class(struct prb_search *s, const struct prb_type *type,
				   const char *name, uint64_t *ret, const struct prb_type **owner)
{
	struct prb_class_cached *entry = cached(s->cache, type->address, name);
	const struct prb_type *found_in = NULL;

	*ret = 0;
	if (!entry || entry->type != type->address || strcmp(entry->name, name)) {
		PRB_TRY(walk_mro(s, type, name, ret, &found_in));
		if (entry) {
			*entry = (struct prb_class_cached){type->address, *ret, found_in, ""};
			strcpy(entry->name, name);
		}
	} else {
		*ret = entry->found;
		found_in = entry->owner;
	}
	if (*ret && owner)
		*owner = found_in;
	return NULL;
}

/*
 * As above, for classes that a snapshot may lack: then only the instance's own attributes are
 * found.
 */
static struct prb_error *try_class(struct prb_search *s, const struct prb_type *type,
				   const char *name, uint64_t *ret, const struct prb_type **owner)
{
	struct prb_error *err = prb_search_class(s, type, name, ret, owner);

	if (prb_error_catch(&err, PRB_ERROR_FAULT))
		*ret = 0;
	return err;
}

static bool has_method(struct prb_search *s, const struct prb_type *type, const char *name)
{
	uint64_t method;
	prb_auto_error struct prb_error *err = prb_search_class(s, type, name, &method, NULL);

	return !err && method;
}

static bool is_data_descriptor(struct prb_search *s, uint64_t object)
{
	struct prb_type *type;
	prb_auto_error struct prb_error *err = prb_repr_type_of(s->r, object, &type);

	if (err)
		return false;
	return prb_type_is(type, "property") || prb_type_is(type, "getset_descriptor") ||
	       has_method(s, type, "__set__") || has_method(s, type, "__delete__");
}

/* Takes a class attribute that is not a data descriptor. Methods count as their functions. */
static struct prb_error *take_from_class(struct prb_search *s, const struct prb_type *type,
					 const char *name, uint64_t found)
{
	static const char *const plain[] = {"function", "builtin_function_or_method",
					    "method_descriptor", "wrapper_descriptor",
					    "classmethod_descriptor"};
	struct prb_type *its;

	PRB_TRY(prb_repr_type_of(s->r, found, &its));
	s->object = found;
	if (prb_type_is(its, "classmethod") || prb_type_is(its, "staticmethod"))
		return prb_repr_member(s->r, found, 0, &s->object);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(plain); i++)
		if (prb_type_is(its, plain[i]))
			return NULL;
	if (its->flags & PRB_PY_HEAP_TYPE && has_method(s, its, "__get__"))
		return prb_search_needs_code(s, "its '%.200s' is computed by code (%s of %s)", name,
					     its->name, type->name);
	return NULL;
}

static struct prb_error *take_member(struct prb_search *s, uint64_t object, uint64_t descriptor)
{
	struct prb_member member;

	PRB_TRY(prb_repr_member_of(s->r, descriptor, &member));
	PRB_TRY(prb_repr_member_value(s->r, object, &member, &s->object, &s->value));
	s->type = prb_repr_text_type(prb_str_text(&s->value));
	return NULL;
}

/* *done is false if the class has no say before the instance. */
static struct prb_error *find_descriptor(struct prb_search *s, const struct prb_type *type,
					 const char *name, uint64_t found,
					 const struct prb_type *owner, bool *done)
{
	struct prb_type *its;

	*done = false;
	if (!found)
		return NULL;
	PRB_TRY(prb_repr_type_of(s->r, found, &its));
	if (prb_type_is(its, "member_descriptor")) {
		struct prb_error *err = take_member(s, s->object, found);

		*done = !err;
		return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? NULL : err;
	}
	if (!is_data_descriptor(s, found))
		return NULL;
	PRB_TRY(prb_known_field(s, type, owner, name, done));
	if (!*done)
		PRB_TRY(prb_known_descriptor(s, found, owner, name, done));
	return *done ? NULL
		     : prb_search_needs_code(s, "its '%.200s' is a %s of %s: computed by code",
					     name, its->name, owner->name);
}

static struct prb_error *no_attribute(struct prb_search *s, const struct prb_type *type,
				      const char *name)
{
	uint64_t getter, found;
	bool done;

	PRB_TRY(try_class(s, type, "__getattr__", &getter, NULL));
	if (getter) {
		PRB_TRY(prb_known_getattr(s, getter, name, &done));
		if (done)
			return NULL;
		return prb_search_needs_code(s,
					     "it has no '%.200s' of its own, and the __getattr__ "
					     "of %s is code",
					     name, type->name);
	}
	/* An attribute that the class could not be searched for is not reported as missing. */
	PRB_TRY(prb_search_class(s, type, name, &found, NULL));
	return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
					       "%.*s, a %s, has no attribute '%.200s'",
					       s->looked_into, s->from, type->name, name),
			      "dir(%.*s) tells what it has", s->looked_into, s->from);
}

/* A module's own __getattr__ is in its dict. */
static struct prb_error *check_module(struct prb_search *s, const struct prb_type *type,
				      uint64_t object)
{
	uint64_t getter;

	if (!prb_type_is(type, "module"))
		return NULL;

	struct prb_error *err = prb_repr_attribute(s->r, object, "__getattr__", &getter);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	return err ? err : prb_search_needs_code(s, "the module's __getattr__ is code");
}

static struct prb_error *no_getattribute(const struct prb_search *s, const struct prb_type *type)
{
	return prb_error_hint(
		prb_search_needs_code(s, "the __getattribute__ of %s is code", type->name),
		"vars(%.*s) tells what it holds; 'probing PID eval CODE' runs code", s->looked_into,
		s->from);
}

/* What the object stores, where a __getattribute__ of the program would be called; *done is false
 * if that is nothing, or not wanted. */
static struct prb_error *find_stored(struct prb_search *s, const struct prb_type *type,
				     const char *name, bool *done)
{
	uint64_t found;
	struct prb_error *err;

	*done = false;
	if (!s->computed_by)
		return NULL;
	err = prb_repr_attribute(s->r, s->object, name, &found);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	*done = true;
	s->object = found;
	snprintf(s->computed_by, PRB_COMPUTED_BY, "%s", type->name);
	return NULL;
}

/* *of_class: what was found is no part of the object. */
static struct prb_error *find_in_instance(struct prb_search *s, const struct prb_type *type,
					  const char *name, bool *of_class)
{
	const struct prb_type *owner = NULL;
	uint64_t object = s->object, found, getter;
	struct prb_error *err;
	bool done;

	PRB_TRY(try_class(s, type, "__getattribute__", &getter, NULL));
	if (getter && prb_repr_is(s->r, getter, "function")) {
		PRB_TRY(find_stored(s, type, name, &done));
		return done ? NULL : no_getattribute(s, type);
	}
	PRB_TRY(try_class(s, type, name, &found, &owner));
	PRB_TRY(find_descriptor(s, type, name, found, owner, &done));
	if (done)
		return NULL;
	err = prb_repr_instance_get(s->r, object, name, &s->object);
	if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return err;
	/* A slot that is not set has no other value. */
	*of_class = found && !prb_repr_is(s->r, found, "member_descriptor");
	if (*of_class)
		return take_from_class(s, type, name, found);
	PRB_TRY(check_module(s, type, object));
	return no_attribute(s, type, name);
}

/* A class has what its MRO has; its own class comes first with what decides. */
static struct prb_error *find_in_class(struct prb_search *s, const struct prb_type *meta,
				       const char *name, bool *of_class)
{
	const struct prb_type *owner = NULL;
	uint64_t found, own, object = s->object;
	struct prb_type *self;
	bool done;

	PRB_TRY(prb_repr_type(s->r, object, &self));
	PRB_TRY(try_class(s, meta, name, &found, &owner));
	/* Where the dict of `type` is not known, what it has is. */
	if (!found)
		PRB_TRY(prb_known_field(s, meta, NULL, name, &done));
	else
		PRB_TRY(find_descriptor(s, meta, name, found, owner, &done));
	if (done)
		return NULL;
	PRB_TRY(prb_search_class(s, self, name, &own, NULL));
	if (own) {
		s->object = own;
		if (prb_repr_is(s->r, own, "property"))
			return NULL;
		return take_from_class(s, self, name, own);
	}
	*of_class = found;
	return found ? take_from_class(s, meta, name, found) : no_attribute(s, meta, name);
}

static void hide(struct prb_search *s)
{
	s->object = 0;
	s->type = "hidden";
	prb_str_truncate(&s->value, 0);
	prb_str_puts(&s->value, PRB_REPR_HIDDEN);
}

static struct prb_error *hide_if(struct prb_search *s,
				 bool (*hides)(struct prb_repr *r, struct prb_type *type),
				 bool *ret)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	*ret = hides(s->r, type);
	if (*ret)
		hide(s);
	return NULL;
}

struct prb_error *prb_search_hidden(struct prb_search *s, bool *ret)
{
	return hide_if(s, prb_repr_hides_all, ret);
}

struct prb_error *prb_search_hidden_item(struct prb_search *s, bool *ret)
{
	return hide_if(s, prb_repr_hides_items, ret);
}

struct prb_error *prb_search_attribute(struct prb_search *s, const char *name)
{
	struct prb_type *type;
	bool done, hidden, of_class = false;
	uint64_t found = 0;

	PRB_TRY(prb_search_of_frame(s, name, &done));
	if (done)
		return NULL;
	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	if (!strcmp(name, "__class__")) {
		/* A class may say something else of its instances. */
		PRB_TRY(try_class(s, type, name, &found, NULL));
		if (!found || prb_repr_is(s->r, found, "getset_descriptor")) {
			s->object = type->address;
			return NULL;
		}
	}
	hidden = prb_repr_hides_all(s->r, type);
	if (type->flags & PRB_PY_TYPE && !hidden && !strcmp(name, "__dict__") &&
	    prb_repr_hides_defaults(s->r, s->object))
		return prb_search_vars(s);
	if (!hidden && prb_repr_hides(s->r, type, s->object, name))
		hidden = true;
	else if (type->flags & PRB_PY_TYPE)
		PRB_TRY(find_in_class(s, type, name, &of_class));
	else
		PRB_TRY(find_in_instance(s, type, name, &of_class));
	if (hidden && !of_class)
		hide(s);
	return NULL;
}

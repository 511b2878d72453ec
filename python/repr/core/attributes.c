/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All attributes of an object: its __dict__, its slots, variables of its frame, and the names of
 * what is computed. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr_private.h"

enum { NAME_CHARACTERS = 1000 };

struct walk {
	struct prb_repr *r;
	uint64_t object;
	prb_attribute_visit *visit;
	void *context;
	bool done;
	struct prb_error *err;
	struct prb_type *type; /* that may hide values; NULL: nothing is hidden */

	/* The classes of the object, and which of them is looked at. */
	uint64_t mro[PRB_MRO_MAX];
	size_t classes, class;
	const char *owner;
};

static bool tell(struct walk *w, const struct prb_attribute *attribute)
{
	struct prb_attribute told = *attribute;

	if (w->type && told.kind & (PRB_ATTRIBUTE_DICT | PRB_ATTRIBUTE_SLOT) &&
	    prb_repr_hides(w->r, w->type, w->object, told.name)) {
		told.object = 0;
		told.text = PRB_REPR_HIDDEN;
	}
	w->done = !w->visit(w->context, &told);
	return !w->done;
}

static bool visit_entry(void *context, uint64_t key, uint64_t value)
{
	struct walk *w = context;
	prb_auto_str struct prb_str name = {};
	bool is_str;

	w->err = prb_repr_is_str(w->r, key, &is_str);
	if (!w->err && is_str)
		w->err = prb_repr_text(w->r, key, NAME_CHARACTERS, &name);
	/* A key that cannot be read is one of another moment. */
	if (prb_error_catch(&w->err, PRB_ERROR_FAULT) ||
	    prb_error_catch(&w->err, PRB_ERROR_BAD_DATA)) {
		w->r->torn = true;
		return true;
	}
	if (w->err)
		return false;
	return tell(w, &(struct prb_attribute){.kind = PRB_ATTRIBUTE_DICT,
					       .name = prb_str_text(&name),
					       .key = key,
					       .object = value});
}

/* True if an earlier class of the MRO has another attribute of that name. */
static struct prb_error *is_hidden(struct walk *w, const char *name, bool *ret)
{
	*ret = false;
	for (size_t i = 0; i < w->class && !*ret; i++) {
		struct prb_type *type;
		uint64_t ignored;

		PRB_TRY(prb_repr_type(w->r, w->mro[i], &type));
		if (!type->dict)
			continue;

		struct prb_error *err = prb_repr_dict_get(w->r, type->dict, name, &ignored);

		*ret = !err;
		if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			PRB_TRY(err);
	}
	return NULL;
}

/* A visitor's error takes precedence over the walk's. */
static struct prb_error *end_of(struct walk *w, struct prb_error *err)
{
	if (!w->err)
		return err;
	prb_error_destroy(err);
	return prb_steal(&w->err);
}

/* Attributes of a model of pydantic 2 that its class does not declare are in a dict of a slot. */
static struct prb_error *tell_extra(struct walk *w, const char *slot, uint64_t value)
{
	if (!value || w->done || strcmp(slot, "__pydantic_extra__") != 0 ||
	    !prb_repr_is(w->r, value, "dict"))
		return NULL;
	return end_of(w, prb_repr_dict_each(w->r, value, visit_entry, w));
}

static struct prb_error *tell_member(struct walk *w, const struct prb_member *member)
{
	prb_auto_str struct prb_str text = {};
	uint64_t value;
	bool hidden;

	PRB_TRY(is_hidden(w, member->name, &hidden));
	if (hidden)
		return NULL;

	struct prb_error *err = prb_repr_member_value(w->r, w->object, member, &value, &text);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	tell(w, &(struct prb_attribute){.kind = PRB_ATTRIBUTE_SLOT,
					.name = member->name,
					.object = value,
					.text = value ? NULL : prb_str_text(&text),
					.owner = w->owner});
	return tell_extra(w, member->name, value);
}

/* Names that C code declares only to make the type, not fields of the object. */
static bool is_offset(const char *name)
{
	size_t length = strlen(name);

	return length > 8 && !strncmp(name, "__", 2) && !strcmp(name + length - 8, "offset__");
}

static bool visit_member(void *context, const struct prb_member *member)
{
	struct walk *w = context;

	w->err = is_offset(member->name) ? NULL : tell_member(w, member);
	return !w->err && !w->done;
}

/* Functions are descriptors as well, but their value is the method and runs no code. */
static bool is_computed(struct prb_repr *r, uint64_t object)
{
	static const char *const plain[] = {"function", "classmethod", "staticmethod",
					    "builtin_function_or_method", "type"};
	struct prb_type *type;
	uint64_t getter;
	prb_auto_error struct prb_error *err = prb_repr_type_of(r, object, &type);

	if (err)
		return false;
	if (prb_type_is(type, "property") || prb_type_is(type, "getset_descriptor"))
		return true;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(plain); i++)
		if (prb_type_is(type, plain[i]))
			return false;
	if (!(type->flags & PRB_PY_HEAP_TYPE))
		return false;
	err = prb_repr_lookup(r, type, "__get__", &getter, NULL);
	return !err;
}

static bool visit_class(void *context, uint64_t key, uint64_t value)
{
	struct walk *w = context;
	prb_auto_str struct prb_str name = {};
	bool hidden = false;

	if (!is_computed(w->r, value))
		return true;
	w->err = prb_repr_text(w->r, key, NAME_CHARACTERS, &name);
	if (!w->err)
		w->err = is_hidden(w, prb_str_text(&name), &hidden);
	if (w->err || hidden || !strcmp(prb_str_text(&name), "__weakref__") ||
	    !strcmp(prb_str_text(&name), "__dict__") || !strcmp(prb_str_text(&name), "__class__"))
		return !w->err;
	return tell(w, &(struct prb_attribute){.kind = PRB_ATTRIBUTE_COMPUTED,
					       .name = prb_str_text(&name),
					       .object = value,
					       .owner = w->owner});
}

/* @p each shows one class of the object. */
static struct prb_error *walk_classes(struct walk *w,
				      struct prb_error *(*each)(struct walk *w,
								const struct prb_type *type))
{
	struct prb_type *type;

	PRB_TRY(prb_repr_nameless_type_of(w->r, w->object, &type));
	PRB_TRY(prb_repr_mro(w->r, type, w->mro, &w->classes));
	for (w->class = 0; w->class < w->classes && !w->done; w->class ++) {
		PRB_TRY(prb_repr_type(w->r, w->mro[w->class], &type));
		w->owner = type->name;
		PRB_TRY(end_of(w, each(w, type)));
	}
	return NULL;
}

static struct prb_error *show_members(struct walk *w, const struct prb_type *type)
{
	return prb_repr_members_each(w->r, type, visit_member, w);
}

static struct prb_error *show_computed(struct walk *w, const struct prb_type *type)
{
	uint64_t dict;

	PRB_TRY(prb_repr_class_dict(w->r, type, &dict));
	return dict ? prb_repr_dict_each(w->r, dict, visit_class, w) : NULL;
}

/* Of a frame, or of what has one. */
static struct prb_error *show_variables(struct walk *w)
{
	const struct prb_py_local *local;
	struct prb_py_locals locals;
	struct prb_py_frame frame;
	bool found;

	PRB_TRY(prb_repr_frame_of(w->r, w->object, &frame, &found));
	if (!found)
		return NULL;
	PRB_TRY(prb_python_locals(w->r->py, w->r->mem, &frame, &locals));
	prb_vec_each (local, &locals.list)
		if (local->object && !w->done)
			tell(w, &(struct prb_attribute){.kind = PRB_ATTRIBUTE_LOCAL,
							.name = local->name,
							.object = local->object});
	prb_py_locals_deinit(&locals);
	return NULL;
}

struct prb_error *prb_repr_attributes(struct prb_repr *r, uint64_t object, unsigned kinds,
				      prb_attribute_visit *visit, void *context)
{
	struct walk w = {.r = r, .object = object, .visit = visit, .context = context};

	if (!(kinds & PRB_ATTRIBUTE_SECRETS) && !r->max.secrets)
		PRB_TRY(prb_repr_nameless_type_of(r, object, &w.type));
	if (kinds & PRB_ATTRIBUTE_DICT)
		PRB_TRY(end_of(&w, prb_repr_instance_each(r, object, visit_entry, &w)));
	if (kinds & PRB_ATTRIBUTE_SLOT && !w.done)
		PRB_TRY(walk_classes(&w, show_members));
	if (kinds & PRB_ATTRIBUTE_LOCAL && !w.done)
		PRB_TRY(show_variables(&w));
	if (kinds & PRB_ATTRIBUTE_COMPUTED && !w.done)
		PRB_TRY(walk_classes(&w, show_computed));
	return NULL;
}

struct prb_error *prb_object_attributes(struct prb_python *py, struct prb_mem *mem, uint64_t object,
					unsigned kinds, prb_attribute_visit *visit, void *context,
					bool *torn)
{
	prb_auto_str struct prb_str unused = {};
	prb_auto_repr struct prb_repr r;

	prb_repr_init(&r, py, mem, NULL, &unused);

	struct prb_error *err = prb_repr_attributes(&r, object, kinds, visit, context);

	if (torn)
		*torn = r.torn;
	return err;
}

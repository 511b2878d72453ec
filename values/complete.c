/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names that the end of an expression may become. They go to shells, so only plain ones are given.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "values/expression_private.h"

enum { NAMES_MAX = 20000, NAME_BYTES = 200 };

struct complete {
	struct prb_search *s;
	const char *base, *stem; /* "self.model." and "la", what is before it and what it begins */
	int base_length;
	unsigned count;
	struct prb_str *out;
};

static bool is_plain(const char *name)
{
	static const char bytes[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	size_t length = strlen(name);

	return length && length <= NAME_BYTES && strspn(name, bytes) == length &&
	       !(*name >= '0' && *name <= '9');
}

static bool add(struct complete *c, const char *name)
{
	if (strncmp(name, c->stem, strlen(c->stem)) != 0 || !is_plain(name) ||
	    (*name == '_' && *c->stem != '_'))
		return true;
	if (c->count++ == NAMES_MAX)
		return false;
	prb_str_printf(c->out, "%.*s%s\n", c->base_length, c->base, name);
	return true;
}

static bool add_attribute(void *context, const struct prb_attribute *attribute)
{
	return add(context, attribute->name);
}

static bool add_key(void *context, uint64_t key, uint64_t value)
{
	struct complete *c = context;
	prb_auto_str struct prb_str name = {};
	struct prb_error *err = prb_repr_text(c->s->r, key, NAME_BYTES + 1, &name);

	(void)value;
	if (err) { /* no str, or an unreadable one */
		prb_error_destroy(err);
		return true;
	}
	return add(c, prb_str_text(&name));
}

static struct prb_error *add_class(struct complete *c, const struct prb_type *type)
{
	struct prb_repr *r = c->s->r;
	uint64_t mro[PRB_MRO_MAX], dict;
	size_t count;

	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = 0; i < count; i++) {
		struct prb_type *class;

		PRB_TRY(prb_repr_type(r, mro[i], &class));
		PRB_TRY(prb_repr_class_dict(r, class, &dict));
		if (dict)
			PRB_TRY(prb_repr_dict_each(r, dict, add_key, c));
	}
	return NULL;
}

/* Attributes that torch.nn.Module keeps in dicts of its own. */
static void add_known(struct complete *c)
{
	static const char *const dicts[] = {"_parameters", "_buffers", "_modules"};

	for (size_t i = 0; i < 3; i++) {
		uint64_t dict;
		struct prb_type *type;
		struct prb_error *err = prb_repr_attribute(c->s->r, c->s->object, dicts[i], &dict);

		if (!err)
			err = prb_repr_type_of(c->s->r, dict, &type);
		if (!err && type->flags & PRB_PY_DICT)
			err = prb_repr_dict_each(c->s->r, dict, add_key, c);
		prb_error_destroy(err);
	}
}

static struct prb_error *add_attributes(struct complete *c)
{
	struct prb_search *s = c->s;
	struct prb_type *type, *self;

	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	if (type->flags & PRB_PY_TYPE) {
		PRB_TRY(prb_repr_type(s->r, s->object, &self));
		return add_class(c, self);
	}
	PRB_TRY(prb_repr_attributes(s->r, s->object, PRB_ATTRIBUTE_DICT, add_attribute, c));
	add_known(c);
	return prb_type_is(type, "module") ? NULL : add_class(c, type);
}

static struct prb_error *add_variables(struct complete *c)
{
	const struct prb_py_frame *frame = c->s->scope->frame;
	struct prb_repr *r = c->s->r;
	struct prb_py_locals locals;
	const struct prb_py_local *local;
	uint64_t globals;

	if (!frame)
		return NULL;
	PRB_TRY(prb_python_locals(r->py, r->mem, frame, &locals));
	prb_vec_each (local, &locals.list)
		if (local->object)
			add(c, local->name);
	prb_py_locals_deinit(&locals);
	PRB_TRY(prb_python_globals(r->py, r->mem, frame, &globals));
	return prb_repr_dict_each(r, globals, add_key, c);
}

struct prb_error *prb_search_complete(struct prb_search *s,
				      struct prb_error *(*find)(struct prb_search *s),
				      struct prb_str *out)
{
	prb_auto_str struct prb_str base = {};
	const char *dot = strrchr(s->text, '.');
	struct complete c = {.s = s, .base = s->text, .stem = dot ? dot + 1 : s->text, .out = out};

	if (*c.stem && !is_plain(c.stem))
		return NULL;
	if (!dot)
		return add_variables(&c);
	c.base_length = (int)(c.stem - s->text);
	prb_str_append(&base, s->text, (size_t)(dot - s->text));
	s->text = s->at = prb_str_text(&base);
	if (base.failed)
		return prb_error_nomem();
	PRB_TRY(find(s));
	return s->object && s->view == PRB_SEARCH_OBJECT ? add_attributes(&c) : NULL;
}

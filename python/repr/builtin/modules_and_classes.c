/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Modules, classes and super objects. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

struct prb_error *prb_repr_handle_type(struct prb_repr *r, uint64_t object,
				       struct prb_type *type __attribute__((unused)))
{
	struct prb_type *self;

	PRB_TRY(prb_repr_type(r, object, &self));
	prb_str_puts(r->out, "<class '");
	PRB_TRY(prb_repr_put_module(r, self));
	PRB_TRY(prb_repr_put_qualname(r, self));
	prb_str_puts(r->out, "'>");
	return NULL;
}

struct prb_error *prb_repr_handle_super(struct prb_repr *r, uint64_t object,
					struct prb_type *type __attribute__((unused)))
{
	uint64_t words[3]; /* type, object, its type */
	struct prb_type *class;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 3, words));
	PRB_TRY(prb_repr_type(r, words[0], &class));
	prb_str_printf(r->out, "<super: <class '%s'>, ", class->name);
	if (!words[2]) {
		prb_str_puts(r->out, "NULL>");
		return NULL;
	}
	PRB_TRY(prb_repr_type(r, words[2], &class));
	prb_str_printf(r->out, "<%s object>>", class->name);
	return NULL;
}

/* The value of a key, or 0 if there is none or it is None. */
static struct prb_error *get(struct prb_repr *r, uint64_t dict, const char *name, uint64_t *ret)
{
	struct prb_error *err = prb_repr_dict_get(r, dict, name, ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		*ret = 0;
	else if (!err && prb_repr_is_none(r, *ret))
		*ret = 0;
	return err;
}

static struct prb_error *get_attribute(struct prb_repr *r, uint64_t object, const char *name,
				       uint64_t *ret)
{
	struct prb_error *err = prb_repr_attribute(r, object, name, ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		*ret = 0;
	else if (!err && prb_repr_is_none(r, *ret))
		*ret = 0;
	return err;
}

static bool is_true(struct prb_repr *r, uint64_t object)
{
	int64_t value = 0;
	prb_auto_error struct prb_error *err = object ? prb_repr_int(r, object, &value) : NULL;

	return !err && value;
}

/* Up to 3.11 loaders that are classes say what their modules look like; NULL for all others. */
static const char *builtin_loader(struct prb_repr *r, uint64_t loader)
{
	static const struct {
		const char *class, *kind;
	} loaders[] = {{"BuiltinImporter", "built-in"}, {"FrozenImporter", "frozen"}};
	struct prb_type *type;
	prb_auto_error struct prb_error *err =
		loader ? prb_repr_type(r, loader, &type) : prb_repr_bad(loader, "no loader");

	for (size_t i = 0; !err && i < PRB_ARRAY_SIZE(loaders); i++)
		if (strcmp(type->name, loaders[i].class) == 0)
			return loaders[i].kind;
	return NULL;
}

static struct prb_error *put_loader(struct prb_repr *r, uint64_t loader)
{
	if (!loader) {
		prb_str_putc(r->out, '>');
		return NULL;
	}
	prb_str_puts(r->out, " (");
	PRB_TRY(prb_repr_object(r, loader));
	prb_str_puts(r->out, ")>");
	return NULL;
}

static struct prb_error *put_from(struct prb_repr *r, uint64_t file)
{
	prb_str_puts(r->out, " from ");
	PRB_TRY(prb_repr_object(r, file));
	prb_str_putc(r->out, '>');
	return NULL;
}

static struct prb_error *put_name(struct prb_repr *r, uint64_t name)
{
	prb_str_puts(r->out, "<module ");
	if (name)
		return prb_repr_object(r, name);
	prb_str_puts(r->out, "'?'");
	return NULL;
}

static struct prb_error *put_by_spec(struct prb_repr *r, uint64_t spec)
{
	uint64_t name, origin, loader, has_location;

	PRB_TRY(get_attribute(r, spec, "name", &name));
	PRB_TRY(get_attribute(r, spec, "origin", &origin));
	PRB_TRY(get_attribute(r, spec, "loader", &loader));
	PRB_TRY(get_attribute(r, spec, "_set_fileattr", &has_location));
	PRB_TRY(put_name(r, name));
	if (!origin)
		return put_loader(r, loader);
	if (is_true(r, has_location))
		return put_from(r, origin);
	prb_str_puts(r->out, " (");
	PRB_TRY(prb_repr_put_text(r, origin));
	prb_str_puts(r->out, ")>");
	return NULL;
}

struct prb_error *prb_repr_handle_module(struct prb_repr *r, uint64_t object,
					 struct prb_type *type __attribute__((unused)))
{
	uint64_t dict, spec, name, file, loader;

	PRB_TRY(prb_repr_member(r, object, 0, &dict));
	PRB_TRY(get(r, dict, "__name__", &name));
	PRB_TRY(get(r, dict, "__loader__", &loader));

	PRB_TRY(get(r, dict, "__spec__", &spec));

	const char *kind = r->traits->module_repr ? builtin_loader(r, loader) : NULL;

	if (spec && !(kind && r->traits->loader_first))
		return put_by_spec(r, spec);
	if (kind) {
		PRB_TRY(put_name(r, name));
		prb_str_printf(r->out, " (%s)>", kind);
		return NULL;
	}
	PRB_TRY(get(r, dict, "__file__", &file));
	PRB_TRY(put_name(r, name));
	return file ? put_from(r, file) : put_loader(r, loader);
}

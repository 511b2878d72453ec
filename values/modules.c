/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/modules.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr_private.h"

enum { MODULES_MAX = 1 << 18, TEXT_MAX = 4096 };

const char *prb_import_kind_name(enum prb_import_kind kind)
{
	static const char *const names[] = {
		[PRB_IMPORT_BUILTIN] = "builtin",
		[PRB_IMPORT_FROZEN] = "frozen",
		[PRB_IMPORT_EXTENSION] = "extension",
		[PRB_IMPORT_SOURCE] = "source",
		[PRB_IMPORT_BYTECODE] = "bytecode",
		[PRB_IMPORT_NAMESPACE] = "namespace",
		[PRB_IMPORT_ZIP] = "zip",
	};

	return names[kind];
}

/* The kind by the class of the loader, or by the loader itself where that is a class. */
static enum prb_import_kind kind_by_loader(const char *class)
{
	static const struct {
		const char *class;
		enum prb_import_kind kind;
	} loaders[] = {
		{"BuiltinImporter", PRB_IMPORT_BUILTIN},
		{"FrozenImporter", PRB_IMPORT_FROZEN},
		{"ExtensionFileLoader", PRB_IMPORT_EXTENSION},
		{"SourceFileLoader", PRB_IMPORT_SOURCE},
		{"SourcelessFileLoader", PRB_IMPORT_BYTECODE},
		{"_NamespaceLoader", PRB_IMPORT_NAMESPACE},
		{"NamespaceLoader", PRB_IMPORT_NAMESPACE},
		{"zipimport.zipimporter", PRB_IMPORT_ZIP},
		{"zipimporter", PRB_IMPORT_ZIP},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(loaders); i++)
		if (!strcmp(loaders[i].class, class))
			return loaders[i].kind;
	return PRB_IMPORT_UNKNOWN;
}

/* Torn or missing data counts as unknown; false for all other errors. */
static bool forgive(struct prb_error **err)
{
	return !*err || prb_error_catch(err, PRB_ERROR_FAULT) ||
	       prb_error_catch(err, PRB_ERROR_BAD_DATA) ||
	       prb_error_catch(err, PRB_ERROR_NOT_FOUND);
}

/* The text of a str in the namespace; NULL if there is none. */
static struct prb_error *get_text(struct prb_repr *r, uint64_t dict, const char *name, char **ret)
{
	prb_auto_str struct prb_str text = {};
	uint64_t object;
	struct prb_error *err = prb_repr_dict_get(r, dict, name, &object);

	if (!err)
		err = prb_repr_text(r, object, TEXT_MAX, &text);
	if (err) {
		if (forgive(&err))
			return NULL;
		return err;
	}
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *kind_of_loader(struct prb_repr *r, uint64_t loader,
					enum prb_import_kind *ret)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(r, loader, &type));
	if (type->flags & PRB_PY_TYPE) /* the loader is a class */
		PRB_TRY(prb_repr_type(r, loader, &type));
	*ret = kind_by_loader(type->name);
	return NULL;
}

/*
 * The spec's loader; __loader__ of a script, which has no spec, and of a namespace package up to
 * 3.6, whose spec has none.
 */
static struct prb_error *find_loader(struct prb_repr *r, uint64_t dict, uint64_t *ret)
{
	uint64_t spec;
	struct prb_error *err = prb_repr_dict_get(r, dict, "__spec__", &spec);

	if (!err && !prb_repr_is_none(r, spec))
		err = prb_repr_attribute(r, spec, "loader", ret);
	else if (forgive(&err))
		err = prb_error_create(PRB_ERROR_NOT_FOUND, "there is no spec");
	if (!err && !prb_repr_is_none(r, *ret))
		return NULL;
	if (!forgive(&err))
		return err;
	return prb_repr_dict_get(r, dict, "__loader__", ret);
}

static struct prb_error *find_kind(struct prb_repr *r, uint64_t dict, enum prb_import_kind *ret)
{
	uint64_t loader;
	struct prb_error *err = find_loader(r, dict, &loader);

	if (!err)
		err = kind_of_loader(r, loader, ret);
	return forgive(&err) ? NULL : err;
}

/* Whether the object is a module: then its dict is the first member. */
static struct prb_error *find_namespace(struct prb_repr *r, uint64_t object,
					const struct prb_type *type, uint64_t *ret)
{
	uint64_t mro[PRB_MRO_MAX];
	size_t count;

	*ret = 0;
	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = 0; i < count; i++) {
		struct prb_type *base;

		PRB_TRY(prb_repr_type(r, mro[i], &base));
		if (prb_type_is(base, "module"))
			return prb_repr_member(r, object, 0, ret);
	}
	return NULL;
}

static struct prb_error *read_type(struct prb_repr *r, struct prb_import *import, uint64_t *dict)
{
	prb_auto_str struct prb_str name = {};
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(r, import->address, &type));
	r->out = &name;
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	import->type = prb_str_take(&name);
	if (!import->type)
		return prb_error_nomem();
	return find_namespace(r, import->address, type, dict);
}

static struct prb_error *read_import(struct prb_python *py, struct prb_mem *mem,
				     struct prb_import *import)
{
	prb_auto_repr struct prb_repr r;
	uint64_t dict = 0, names;
	struct prb_error *err;

	import->names = -1;
	prb_repr_init(&r, py, mem, NULL, NULL);
	err = read_type(&r, import, &dict);
	if (!forgive(&err))
		return err;
	if (!dict)
		return NULL;
	err = prb_repr_dict_size(&r, dict, &names);
	if (!err)
		import->names = (int64_t)names;
	if (!forgive(&err))
		return err;
	PRB_TRY(get_text(&r, dict, "__file__", &import->file));
	PRB_TRY(get_text(&r, dict, "__version__", &import->version));
	PRB_TRY(get_text(&r, dict, "__package__", &import->package));
	return find_kind(&r, dict, &import->kind);
}

struct visit {
	struct prb_python *py;
	struct prb_mem *mem;
	struct prb_imports *imports;
	struct prb_error *err;
};

static bool add(void *context, uint64_t key, uint64_t value)
{
	struct visit *v = context;
	prb_auto_str struct prb_str name = {};

	v->err = prb_object_str(v->py, v->mem, key, TEXT_MAX, &name);
	if (v->err) /* a key that is no str names no module */
		return forgive(&v->err);

	struct prb_import *import = prb_vec_push(&v->imports->list);
	if (import) {
		import->address = value;
		import->name = prb_str_take(&name);
	}
	if (!import || !import->name)
		v->err = prb_error_nomem();
	return !v->err && v->imports->list.count < MODULES_MAX;
}

static struct prb_error *find_modules(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				      uint64_t *ret)
{
	if (py->layout.interp_modules == PRB_ABSENT)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the location of sys.modules is unknown");
	return prb_mem_read_u64(mem, interp + (uint64_t)py->layout.interp_modules, ret);
}

static struct prb_error *read_all(struct visit *v, uint64_t interp)
{
	struct prb_import *import;
	uint64_t modules;

	PRB_TRY(find_modules(v->py, v->mem, interp, &modules));
	PRB_TRY(prb_object_dict_each(v->py, v->mem, modules, add, v));
	PRB_TRY(v->err);
	prb_vec_each (import, &v->imports->list)
		PRB_TRY(read_import(v->py, v->mem, import));
	return NULL;
}

struct prb_error *prb_imports_read(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				   struct prb_imports *ret)
{
	struct visit visit = {.py = py, .mem = mem, .imports = ret};

	*ret = (struct prb_imports){};

	struct prb_error *err = read_all(&visit, interp);
	if (err)
		prb_imports_deinit(ret);
	return err;
}

void prb_imports_deinit(struct prb_imports *imports)
{
	struct prb_import *import;

	prb_vec_each (import, &imports->list) {
		free(import->name);
		free(import->type);
		free(import->file);
		free(import->version);
		free(import->package);
	}
	prb_vec_free(&imports->list);
}

struct prb_error *prb_imports_count(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				    int64_t *ret)
{
	prb_auto_repr struct prb_repr r;
	uint64_t modules, count;

	prb_repr_init(&r, py, mem, NULL, NULL);
	PRB_TRY(find_modules(py, mem, interp, &modules));
	PRB_TRY(prb_repr_dict_size(&r, modules, &count));
	*ret = (int64_t)count;
	return NULL;
}

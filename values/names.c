/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Looks a name up in a frame: local, global, builtin, or a module. */
#include <string.h>

#include "base/cleanup.h"
#include "values/expression_private.h"

/* Builtins are a module or its dict. */
static struct prb_error *find_builtin(struct prb_search *s, uint64_t globals, const char *name)
{
	struct prb_type *type;
	uint64_t builtins;

	PRB_TRY(prb_repr_dict_get(s->r, globals, "__builtins__", &builtins));
	PRB_TRY(prb_repr_type_of(s->r, builtins, &type));
	if (type->flags & PRB_PY_DICT)
		return prb_repr_dict_get(s->r, builtins, name, &s->object);
	return prb_repr_attribute(s->r, builtins, name, &s->object);
}

static struct prb_error *no_variable(const struct prb_search *s, const char *name)
{
	if (s->scope->missing)
		prb_str_puts(s->scope->missing, name);
	const char *hint = "it is neither in this frame, nor global, nor a builtin, nor a module "
			   "that is imported";

	if (s->scope->names != PRB_NAMES_ALL)
		hint = "it is in no frame of this thread, nor in __main__, nor a builtin, nor a "
		       "module that is imported";
	if (!s->scope->frame)
		hint = "only names of imported modules are known where no Python frame is";
	return prb_error_hint(
		prb_error_create(PRB_ERROR_NOT_FOUND, "there is no variable '%.200s'", name), "%s",
		hint);
}

static struct prb_error *read_modules(struct prb_search *s, uint64_t *ret)
{
	int32_t place = s->r->layout->interp_modules;

	*ret = 0;
	if (!s->scope->interp || place < 0)
		return NULL;
	return prb_repr_word(s->r, s->scope->interp + (uint64_t)place, ret);
}

/* A module that some code has imported, whether this frame has a name for it or not. */
static struct prb_error *find_module(struct prb_search *s, const char *name)
{
	uint64_t modules;
	struct prb_error *err;

	PRB_TRY(read_modules(s, &modules));
	if (!modules)
		return no_variable(s, name);
	err = prb_repr_dict_get(s->r, modules, name, &s->object);
	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? no_variable(s, name) : err;
}

static struct prb_error *find_in_main(struct prb_search *s, const char *name)
{
	struct prb_error *err;
	uint64_t modules, main;

	PRB_TRY(read_modules(s, &modules));
	if (!modules)
		return no_variable(s, name);
	err = prb_repr_dict_get(s->r, modules, "__main__", &main);
	if (!err)
		err = prb_repr_attribute(s->r, main, name, &s->object);
	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? no_variable(s, name) : err;
}

static struct prb_error *find_elsewhere(struct prb_search *s, uint64_t globals, const char *name)
{
	struct prb_error *err = find_builtin(s, globals, name);

	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? find_module(s, name) : err;
}

static struct prb_error *find_global(struct prb_search *s, const char *name)
{
	uint64_t globals;

	PRB_TRY(prb_python_globals(s->r->py, s->r->mem, s->scope->frame, &globals));

	if (s->scope->names == PRB_NAMES_ELSEWHERE)
		return find_elsewhere(s, globals, name);

	struct prb_error *err = prb_repr_dict_get(s->r, globals, name, &s->object);
	if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return err;
	return s->scope->names == PRB_NAMES_FRAME ? no_variable(s, name)
						  : find_elsewhere(s, globals, name);
}

/* A variable of a function around that the code does not use is found in that function's frame. */
static struct prb_error *search_around(struct prb_search *s, const char *name, bool *found)
{
	struct prb_error *err = prb_search_around(s, name, found);

	if (s->scope->names != PRB_NAMES_FRAME || !prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return err;
	*found = false;
	s->object = 0;
	return NULL;
}

struct prb_error *prb_search_name(struct prb_search *s, const char *typed)
{
	struct prb_py_locals locals;
	const struct prb_py_local *local;
	prb_auto_str struct prb_str whole = {};
	bool found = false;

	if (s->scope->names == PRB_NAMES_MAIN)
		return find_in_main(s, typed);
	if (!s->scope->frame)
		return find_module(s, typed);
	PRB_TRY(prb_search_mangle(s, typed, &whole));
	const char *name = prb_str_text(&whole);
	if (s->scope->names == PRB_NAMES_ELSEWHERE)
		return find_global(s, name);
	PRB_TRY(prb_python_locals(s->r->py, s->r->mem, s->scope->frame, &locals));
	prb_vec_each (local, &locals.list) {
		if (strcmp(local->name, name))
			continue;
		found = true;
		s->object = local->object;
	}
	prb_py_locals_deinit(&locals);
	if (!found)
		PRB_TRY(search_around(s, name, &found));
	if (!found)
		return find_global(s, name);
	if (s->object)
		return NULL;
	return prb_error_create(PRB_ERROR_NOT_FOUND, "'%.200s' is unbound here", name);
}

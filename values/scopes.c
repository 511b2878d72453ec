/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a name would mean in the source of the frame's code, where that is neither a variable of it
 * nor a global: a private name of a class, or a variable of the functions around. As
 * package/probing/_variables.py has it, from outside.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/expression_private.h"

enum { OPTIMIZED = 1, NESTED = 0x10, MAX_CONSTS = 4096, MAX_NEST = 8, MAX_ITEMS = 100000 };

#define auto_code __attribute__((cleanup(prb_py_code_deinit)))

static bool is_private(const char *name)
{
	size_t length = strlen(name);

	return !strncmp(name, "__", 2) && strcmp(name + length - 2, "__") != 0;
}

/** Whether the code is a class's body, which has neither the flag nor a name such as <module>. */
static bool is_class_body(const struct prb_py_code *code)
{
	return !(code->flags & OPTIMIZED) && code->name && code->name[0] != '<';
}

/** The part of a qualified name that is the class around its last one; empty: none. */
static void class_in(const char *qualname, struct prb_str *ret)
{
	static const char local[] = "<locals>";
	const char *end = strrchr(qualname, '.');
	bool above = false; /* what has it in it is a function */

	while (end) {
		const char *start = end;
		size_t length;

		while (start > qualname && start[-1] != '.')
			start--;
		length = (size_t)(end - start);
		bool is_local = length == strlen(local) && !strncmp(start, local, length);

		if (!is_local && !above) {
			prb_str_append(ret, start, length);
			return;
		}
		above = is_local;
		end = start > qualname ? start - 1 : NULL;
	}
}

/** The class whose private names the frame's code can use; *known: false if it cannot be known. */
static struct prb_error *find_class(struct prb_search *s, struct prb_str *ret, bool *known)
{
	prb_auto_free char *found = NULL;
	auto_code struct prb_py_code code = {};

	*known = true;
	PRB_TRY(prb_python_code(s->r->py, s->r->mem, s->scope->frame->code, &code));
	if (is_class_body(&code)) {
		prb_str_puts(ret, code.name);
		return NULL;
	}
	if (!(code.flags & OPTIMIZED))
		return NULL;
	if (!code.qualname)
		PRB_TRY(prb_python_qualname(s->r->py, s->r->mem, s->scope->frame, &code, &found));
	*known = code.qualname || found;
	if (*known)
		class_in(code.qualname ? code.qualname : found, ret);
	return NULL;
}

struct prb_error *prb_search_mangle(struct prb_search *s, const char *name, struct prb_str *ret)
{
	prb_auto_str struct prb_str class = {};
	const char *own;
	bool known;

	if (s->scope->frame && is_private(name)) {
		PRB_TRY(find_class(s, &class, &known));
		if (!known)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_NOT_FOUND,
						 "'%.200s' is a private name, and the class around "
						 "the code is not known",
						 name),
				"write it as '_CLASS%.200s'", name);
		own = prb_str_text(&class);
		own += strspn(own, "_");
		if (*own)
			prb_str_printf(ret, "_%s", own);
	}
	prb_str_puts(ret, name);
	return ret->failed ? prb_error_nomem() : NULL;
}

/** A search among constants, which ends after so many. */
struct nest {
	struct prb_search *s;
	uint64_t wanted;
	unsigned items;
	bool direct; /**< of the code itself alone */
};

static bool contains(struct nest *n, uint64_t code, unsigned depth)
{
	struct prb_search search = {
		.r = n->s->r, .scope = n->s->scope, .object = code, .text = "", .from = ""};
	struct prb_error *err = prb_search_attribute(&search, "co_consts");
	uint64_t items[MAX_CONSTS], count = 0;
	bool found = false;

	if (!err)
		err = prb_repr_tuple(n->s->r, search.object, items, MAX_CONSTS, &count);
	count = err ? 0 : PRB_MIN(count, (uint64_t)MAX_CONSTS);
	prb_error_destroy(err); /* then it is not in it, as far as we know */
	prb_str_deinit(&search.value);
	for (uint64_t i = 0; i < count && !found; i++)
		found = items[i] == n->wanted;
	for (uint64_t i = 0; i < count && !found && !n->direct && depth < MAX_NEST; i++)
		if (n->items++ < MAX_ITEMS && prb_repr_is(n->s->r, items[i], "code"))
			found = contains(n, items[i], depth + 1);
	return found;
}

/** Whether the code is called where it stands, by the code around it. */
static bool is_called_at_once(const struct prb_py_code *code)
{
	static const char *const names[] = {"<listcomp>", "<setcomp>", "<dictcomp>"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		if (!strcmp(code->name, names[i]))
			return true;
	return is_class_body(code) || !strncmp(code->name, "<generic parameters of ", 23);
}

static struct prb_error *refuse(const char *name, const struct prb_py_code *owner, int depth)
{
	struct prb_error *err = prb_error_create(
		PRB_ERROR_NOT_FOUND,
		"'%.200s' is a variable of %.200s, which the code here does not use", name,
		owner->qualname ? owner->qualname : owner->name);

	if (depth < 0)
		return prb_error_hint(err, "so it has no value of it");
	return prb_error_hint(err, "'--frame %d' has it, if that is the one around", depth);
}

/** Whether the code has such a variable; found, if it is that of a certain @p frame. */
static struct prb_error *look_in(struct prb_search *s, uint64_t address,
				 const struct prb_py_code *code, const struct prb_py_frame *frame,
				 const char *name, bool *has)
{
	struct prb_py_variables variables;
	const struct prb_py_variable *variable;
	const struct prb_py_local *local;
	struct prb_py_locals locals;

	*has = false;
	if (!(code->flags & OPTIMIZED))
		return NULL;
	PRB_TRY(prb_python_variables(s->r->py, s->r->mem, address, code, &variables));
	prb_vec_each (variable, &variables.list)
		*has |= !variable->hidden && !strcmp(variable->name, name);
	prb_py_variables_deinit(&variables);
	if (!*has || !frame)
		return NULL;
	PRB_TRY(prb_python_locals(s->r->py, s->r->mem, frame, &locals));
	prb_vec_each (local, &locals.list)
		if (!strcmp(local->name, name))
			s->object = local->object;
	prb_py_locals_deinit(&locals);
	return s->object ? NULL
			 : prb_error_create(PRB_ERROR_NOT_FOUND, "'%.200s' is unbound here", name);
}

/** Among the callers. *around: one of them has the code. */
static struct prb_error *look_at_callers(struct prb_search *s, const char *name, bool *around,
					 bool *found)
{
	const struct prb_py_scope *scope = s->scope;
	uint64_t own = scope->frame->code;
	bool certain = true;
	int depth = (int)scope->depth;

	for (size_t i = 0; i < scope->callers && !*found; i++) {
		const struct prb_py_frame *frame = &scope->frame[1 + i];
		auto_code struct prb_py_code code = {}, inner = {};
		struct nest nest = {.s = s, .wanted = own, .direct = certain};

		if (frame->hidden || !frame->code)
			continue;
		depth++;
		PRB_TRY(prb_python_code(s->r->py, s->r->mem, own, &inner));
		nest.direct = certain = certain && is_called_at_once(&inner);
		if (!contains(&nest, frame->code, 0)) {
			certain = false;
			continue;
		}
		*around = true;
		PRB_TRY(prb_python_code(s->r->py, s->r->mem, frame->code, &code));
		PRB_TRY(look_in(s, frame->code, &code, certain ? frame : NULL, name, found));
		if (*found && !certain)
			return refuse(name, &code, depth);
		own = frame->code;
	}
	return NULL;
}

struct globals {
	struct nest nest;
	uint64_t module; /**< its name: classes of others are not looked into */
	uint64_t code;	 /**< that has the one, and does not stand in another function; 0 */
	unsigned depth;
};

static bool visit_global(void *context, uint64_t key, uint64_t value)
{
	struct globals *g = context;
	struct prb_repr *r = g->nest.s->r;
	struct prb_type *type, *class;
	uint64_t code, dict, module;

	(void)key;
	prb_auto_error struct prb_error *err = prb_repr_type_of(r, value, &type);
	if (err || g->nest.items++ >= MAX_ITEMS)
		return !g->code;
	if (prb_type_is(type, "function")) {
		err = prb_repr_word(r, value + (uint64_t)r->layout->function_code, &code);
		if (!err && contains(&g->nest, code, 0))
			g->code = code;
	} else if (type->flags & PRB_PY_TYPE && !g->depth) {
		err = prb_repr_type(r, value, &class);
		if (!err)
			err = prb_repr_class_dict(r, class, &dict);
		if (!err && dict)
			err = prb_repr_dict_get(r, dict, "__module__", &module);
		g->depth++;
		if (!err && dict && module == g->module)
			err = prb_repr_dict_each(r, dict, visit_global, g);
		g->depth--;
	}
	return !g->code;
}

/** Among the functions of the module, and of its classes. */
static struct prb_error *look_at_functions(struct prb_search *s, const char *name)
{
	struct globals g = {.nest = {.s = s, .wanted = s->scope->frame->code}};
	auto_code struct prb_py_code code = {};
	uint64_t globals;
	bool found;

	PRB_TRY(prb_python_globals(s->r->py, s->r->mem, s->scope->frame, &globals));
	prb_error_destroy(prb_repr_dict_get(s->r, globals, "__name__", &g.module));
	PRB_TRY(prb_repr_dict_each(s->r, globals, visit_global, &g));
	if (!g.code)
		return NULL;
	PRB_TRY(prb_python_code(s->r->py, s->r->mem, g.code, &code));
	PRB_TRY(look_in(s, g.code, &code, NULL, name, &found));
	return found ? refuse(name, &code, -1) : NULL;
}

struct prb_error *prb_search_around(struct prb_search *s, const char *name, bool *ret)
{
	auto_code struct prb_py_code code = {};
	bool around = false;

	*ret = false;
	PRB_TRY(prb_python_code(s->r->py, s->r->mem, s->scope->frame->code, &code));
	if (!code.name || (!(code.flags & NESTED) && !is_class_body(&code)))
		return NULL;
	PRB_TRY(look_at_callers(s, name, &around, ret));
	return around || *ret ? NULL : look_at_functions(s, name);
}

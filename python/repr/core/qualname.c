/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Qualified names before 3.11, where code objects do not have one: it is in the function, so the
 * function is looked for where its frame would have found it, in its globals and in the class of
 * its first argument. Only a function with the very same code counts; otherwise there is none.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "python/repr/core/repr.h"
#include "python/repr/core/repr_private.h"
#include "python/python.h"

enum { MAX_QUALNAME = 4096 };

/* Members of a function object, in words behind its header. */
struct function_words {
	uint8_t code, qualname;
};

static struct function_words function_words(const struct prb_python *py)
{
	if (py->layout.behaviour->names_in_front)
		return (struct function_words){.code = 4, .qualname = 3};
	return (struct function_words){.code = 0, .qualname = 11};
}

/* A candidate: if it is the function of @p code, or wraps it, *found is that function. */
static struct prb_error *match(struct prb_repr *r, uint64_t object, uint64_t code, uint64_t *found)
{
	static const struct {
		const char *type;
		uint8_t words; /* how many of its first members may be functions */
	} wrappers[] = {{"classmethod", 1}, {"staticmethod", 1}, {"property", 3}};
	uint64_t member;

	if (prb_repr_is(r, object, "function")) {
		PRB_TRY(prb_repr_member(r, object, function_words(r->py).code, &member));
		if (member == code)
			*found = object;
		return NULL;
	}
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
		if (!prb_repr_is(r, object, wrappers[i].type))
			continue;
		for (unsigned word = 0; word < wrappers[i].words && !*found; word++) {
			PRB_TRY(prb_repr_member(r, object, word, &member));
			if (member && prb_repr_is(r, member, "function"))
				PRB_TRY(match(r, member, code, found));
		}
	}
	return NULL;
}

static struct prb_error *search_dict(struct prb_repr *r, uint64_t dict, const char *name,
				     uint64_t code, uint64_t *found)
{
	uint64_t object;
	struct prb_error *err = prb_object_dict_get(r->py, r->mem, dict, name, &object);

	if (err)
		return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? NULL : err;
	return match(r, object, code, found);
}

/* A private name (__x) is in the class as _Class__x. */
static struct prb_error *search_class(struct prb_repr *r, struct prb_type *class, const char *name,
				      uint64_t code, uint64_t *found)
{
	size_t length = strlen(name);

	if (!class->dict)
		return NULL;
	PRB_TRY(search_dict(r, class->dict, name, code, found));
	if (*found || strncmp(name, "__", 2) || !strcmp(name + length - 2, "__"))
		return NULL;

	const char *plain = class->name + strspn(class->name, "_");
	prb_auto_free char *mangled = prb_format("_%s%s", plain, name);
	if (!mangled)
		return prb_error_nomem();
	return search_dict(r, class->dict, mangled, code, found);
}

static struct prb_error *search_mro(struct prb_repr *r, struct prb_type *type, const char *name,
				    uint64_t code, uint64_t *found)
{
	uint64_t mro[PRB_MRO_MAX];
	size_t count;

	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = 0; i < count && !*found; i++) {
		struct prb_type *class;

		PRB_TRY(prb_repr_type(r, mro[i], &class));
		PRB_TRY(search_class(r, class, name, code, found));
	}
	return NULL;
}

/* The first argument is an instance (methods) or the class itself (class methods, __new__). */
static struct prb_error *search_self(struct prb_repr *r, uint64_t self, const char *name,
				     uint64_t code, uint64_t *found)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(r, self, &type));
	if (type->flags & PRB_PY_TYPE) {
		struct prb_type *class;

		PRB_TRY(prb_repr_type(r, self, &class));
		PRB_TRY(search_mro(r, class, name, code, found));
	}
	return *found ? NULL : search_mro(r, type, name, code, found);
}

/* Value of the first argument; 0 if there is none, or if it was deleted. */
static struct prb_error *first_argument(struct prb_repr *r, const struct prb_py_frame *frame,
					const struct prb_py_code *code, uint64_t *ret)
{
	*ret = 0;
	if (!code->arg_count)
		return NULL;
	PRB_TRY(prb_mem_read_u64(r->mem, frame->address + (uint64_t)r->layout->pyframe_localsplus,
				 ret));
	if (*ret)
		return NULL;

	/* It may have moved to a cell, for inner functions to use. */
	struct prb_py_locals locals;
	PRB_TRY(prb_python_locals(r->py, r->mem, frame, &locals));
	if (locals.list.count)
		*ret = locals.list.items[0].object;
	prb_py_locals_deinit(&locals);
	return NULL;
}

static struct prb_error *find_function(struct prb_repr *r, const struct prb_py_frame *frame,
				       const struct prb_py_code *code, uint64_t *found)
{
	uint64_t globals, self;

	PRB_TRY(prb_python_globals(r->py, r->mem, frame, &globals));
	PRB_TRY(search_dict(r, globals, code->name, frame->code, found));
	if (*found)
		return NULL;
	PRB_TRY(first_argument(r, frame, code, &self));
	return self ? search_self(r, self, code->name, frame->code, found) : NULL;
}

struct prb_error *prb_python_globals(struct prb_python *py, struct prb_mem *mem,
				     const struct prb_py_frame *frame, uint64_t *ret)
{
	const struct prb_layout *l = &py->layout;
	int32_t offset =
		l->behaviour->chain == PRB_CHAIN_PYFRAME ? l->pyframe_globals : l->frame_globals;

	PRB_TRY(prb_mem_read_u64(mem, frame->address + (uint64_t)offset, ret));
	if (l->behaviour->tagged_refs)
		*ret &= ~3ULL;
	return NULL;
}

struct prb_error *prb_python_module_name(struct prb_python *py, struct prb_mem *mem,
					 uint64_t globals, char **ret)
{
	prb_auto_str struct prb_str name = {};
	uint64_t object;

	PRB_TRY(prb_object_dict_get(py, mem, globals, "__name__", &object));
	PRB_TRY(prb_object_str(py, mem, object, MAX_QUALNAME, &name));
	*ret = prb_str_take(&name);
	return *ret ? NULL : prb_error_nomem();
}

struct prb_error *prb_python_qualname(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_py_frame *frame,
				      const struct prb_py_code *code, char **ret)
{
	prb_auto_str struct prb_str unused = {}, qualname = {};
	prb_auto_repr struct prb_repr r = {};
	uint64_t function = 0, object;

	*ret = NULL;
	if (!strcmp(code->name, "<module>")) {
		*ret = strdup(code->name);
		return *ret ? NULL : prb_error_nomem();
	}
	prb_repr_init(&r, py, mem, NULL, &unused);
	PRB_TRY(find_function(&r, frame, code, &function));
	if (!function)
		return NULL;
	PRB_TRY(prb_repr_member(&r, function, function_words(py).qualname, &object));
	PRB_TRY(prb_object_str(py, mem, object, MAX_QUALNAME, &qualname));
	*ret = prb_str_take(&qualname);
	return *ret ? NULL : prb_error_nomem();
}

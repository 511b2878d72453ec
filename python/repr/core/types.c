/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Types of objects: read once per repr, validated, and asked for names and class attributes. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr_private.h"

enum { TYPE_BYTES = 512, TYPES_MAX = 4096, STATIC_TYPES_MAX = 4096 };

static uint64_t word_at(const uint8_t *bytes, int32_t offset)
{
	uint64_t word = 0;

	if (offset >= 0 && offset <= TYPE_BYTES - (int)sizeof(word))
		memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static size_t bytes_needed(const struct prb_layout *l)
{
	const int32_t offsets[] = {l->object_type, l->type_name,       l->type_basicsize,
				   l->type_flags,  l->type_itemsize,   l->type_dict,
				   l->type_base,   l->type_mro,	       l->type_repr,
				   l->var_size,	   l->type_dictoffset, l->type_members};
	int32_t end = 0;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(offsets); i++)
		if (offsets[i] > end)
			end = offsets[i];
	return PRB_MIN((size_t)end + 8, (size_t)TYPE_BYTES);
}

/* The end of all metatypes, although it does not say so itself. */
static bool is_damaged_metatype(struct prb_repr *r, uint64_t type)
{
	if (prb_python_builtin_at(r->py, type) != PRB_BUILTIN_TYPE)
		return false;
	prb_python_note_damage(r->py, PRB_BUILTIN_TYPE);
	return true;
}

/* The type of a type says of itself that it is one. Types of C that were never made ready have
 * none: before 3.10 these are some of the standard library, such as functools.KeyWrapper. */
static struct prb_error *check_metatype(struct prb_repr *r, uint64_t address, uint64_t metatype,
					uint64_t flags)
{
	enum { NEVER_READY_UNTIL = 0x0309, LEVELS = 8 };

	if (!metatype && !(flags & (PRB_PY_READY | PRB_PY_HEAP_TYPE)) &&
	    r->layout->version <= NEVER_READY_UNTIL)
		return NULL;
	/* The type of the metaclass is one, too, and so on up to type, whose type is itself. */
	for (unsigned level = 0; level < LEVELS; level++) {
		uint64_t above = 0;

		if (prb_python_is_builtin(r->py, metatype, PRB_BUILTIN_TYPE))
			return NULL;
		PRB_TRY(prb_repr_word(r, metatype + (uint64_t)r->layout->type_flags, &flags));
		if (flags & PRB_PY_TYPE)
			PRB_TRY(prb_repr_word(r, metatype + (uint64_t)r->layout->object_type,
					      &above));
		if (above == metatype || is_damaged_metatype(r, metatype))
			return NULL;
		if (!above)
			break;
		metatype = above;
	}
	return prb_repr_bad(address, "not a type");
}

/*
 * A type of the interpreter is known by its address, whatever was written over its members: it is
 * what it has to be. False if it is none, or healthy.
 */
static bool mend(struct prb_repr *r, struct prb_type *type, bool damaged)
{
	enum prb_builtin which = prb_python_builtin_at(r->py, type->address);
	uint64_t must;

	if (which == PRB_BUILTIN_COUNT)
		return false;
	must = PRB_PY_READY | prb_builtin_types[which].flag;
	if (!damaged && (type->flags & (PRB_PY_READY | PRB_PY_KINDS)) == must)
		return false;
	prb_python_note_damage(r->py, which);
	type->flags = must;
	if (r->layout->interp_static_types >= 0)
		type->flags |= PRB_PY_STATIC_BUILTIN;
	snprintf(type->name, sizeof(type->name), "%s", prb_builtin_types[which].name);
	type->named = true;
	return true;
}

/* A type is made ready before it has objects; most are derived from one kind, none from two. */
static bool has_odd_flags(const struct prb_type *type)
{
	uint64_t kinds = type->flags & PRB_PY_KINDS;

	return !(type->flags & PRB_PY_READY) || !kinds || kinds & (kinds - 1);
}

/* All but its name, which lies elsewhere. */
static struct prb_error *read_type(struct prb_repr *r, uint64_t address, struct prb_type *type)
{
	const struct prb_layout *l = r->layout;
	uint8_t bytes[TYPE_BYTES];

	if (!address || address % sizeof(void *))
		return prb_repr_bad(address, "not a type");
	PRB_TRY(prb_mem_read(r->mem, address, bytes, bytes_needed(l)));
	type->address = address;
	type->flags = word_at(bytes, l->type_flags);
	type->base = word_at(bytes, l->type_base);
	type->mro = word_at(bytes, l->type_mro);
	type->dict = word_at(bytes, l->type_dict);
	type->repr = word_at(bytes, l->type_repr);
	type->members = word_at(bytes, l->type_members);
	type->basicsize = (int64_t)word_at(bytes, l->type_basicsize);
	type->itemsize = (int64_t)word_at(bytes, l->type_itemsize);
	type->dictoffset = (int64_t)word_at(bytes, l->type_dictoffset);
	type->name_at = word_at(bytes, l->type_name);

	struct prb_error *err =
		check_metatype(r, address, word_at(bytes, l->object_type), type->flags);

	if (err || has_odd_flags(type)) {
		if (mend(r, type, err != NULL))
			prb_error_destroy(prb_steal(&err));
		PRB_TRY(err);
	}
	if (type->basicsize < 0 || type->basicsize > INT32_MAX || type->itemsize < 0 ||
	    type->itemsize > INT32_MAX)
		return prb_repr_bad(address, "a type with impossible sizes");
	return NULL;
}

static void type_guard(struct prb_type **type)
{
	free(*type);
}

struct prb_error *prb_repr_nameless_type(struct prb_repr *r, uint64_t address,
					 struct prb_type **ret)
{
	__attribute__((cleanup(type_guard))) struct prb_type *type = NULL;
	struct prb_type **recent = &r->recent[address / 16 % PRB_REPR_RECENT], **known;

	if (*recent && (*recent)->address == address) {
		*ret = *recent;
		return NULL;
	}
	prb_vec_each (known, &r->types)
		if ((*known)->address == address) {
			*ret = *recent = *known;
			return NULL;
		}
	if (r->types.count >= TYPES_MAX)
		return prb_repr_bad(address, "too many types");
	type = calloc(1, sizeof(*type));
	if (!type)
		return prb_error_nomem();
	PRB_TRY(read_type(r, address, type));
	known = prb_vec_push(&r->types);
	if (!known)
		return prb_error_nomem();
	*ret = *recent = *known = prb_steal(&type);
	return NULL;
}

/* Without the interpreter's file, a core has no names of its types. A static type whose base is of
 * no kind is the builtin type of its own kind: all others of that kind are derived from it. */
static bool name_by_kind(struct prb_repr *r, struct prb_type *type)
{
	uint64_t kind = type->flags & PRB_PY_KINDS, of_base;
	int i = 0;

	if (!r->py->target || r->py->target->live || !kind || type->flags & PRB_PY_HEAP_TYPE ||
	    has_odd_flags(type))
		return false;

	prb_auto_error struct prb_error *err =
		prb_repr_word(r, type->base + (uint64_t)r->layout->type_flags, &of_base);

	while (i < PRB_BUILTIN_COUNT && prb_builtin_types[i].flag != kind)
		i++;
	if (err || of_base & PRB_PY_KINDS || i == PRB_BUILTIN_COUNT)
		return false;
	snprintf(type->name, sizeof(type->name), "%s", prb_builtin_types[i].name);
	return true;
}

struct prb_error *prb_repr_type(struct prb_repr *r, uint64_t address, struct prb_type **ret)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_nameless_type(r, address, &type));
	if (!type->named) {
		struct prb_error *err =
			prb_repr_cstr(r, type->name_at, type->name, sizeof(type->name));

		if (err && err->code == PRB_ERROR_FAULT &&
		    (mend(r, type, true) || name_by_kind(r, type)))
			prb_error_destroy(prb_steal(&err));
		PRB_TRY(err);
	}
	type->named = true;
	*ret = type;
	return NULL;
}

static struct prb_error *type_address(struct prb_repr *r, uint64_t object, uint64_t *ret)
{
	if (!object || object % sizeof(void *))
		return prb_repr_bad(object, "not an object");
	return prb_repr_word(r, object + (uint64_t)r->layout->object_type, ret);
}

struct prb_error *prb_repr_type_of(struct prb_repr *r, uint64_t object, struct prb_type **ret)
{
	uint64_t type;

	PRB_TRY(type_address(r, object, &type));
	return prb_repr_type(r, type, ret);
}

struct prb_error *prb_repr_nameless_type_of(struct prb_repr *r, uint64_t object,
					    struct prb_type **ret)
{
	uint64_t type;

	PRB_TRY(type_address(r, object, &type));
	return prb_repr_nameless_type(r, type, ret);
}

static struct prb_error *is_kind(struct prb_repr *r, uint64_t object, enum prb_builtin builtin,
				 uint64_t flag, bool *ret)
{
	struct prb_type *type;
	uint64_t address;

	PRB_TRY(type_address(r, object, &address));
	*ret = prb_python_is_builtin(r->py, address, builtin);
	if (*ret)
		return NULL;
	PRB_TRY(prb_repr_nameless_type(r, address, &type));
	*ret = type->flags & flag;
	return NULL;
}

struct prb_error *prb_repr_is_dict(struct prb_repr *r, uint64_t object, bool *ret)
{
	return is_kind(r, object, PRB_BUILTIN_DICT, PRB_PY_DICT, ret);
}

struct prb_error *prb_repr_is_str(struct prb_repr *r, uint64_t object, bool *ret)
{
	return is_kind(r, object, PRB_BUILTIN_STR, PRB_PY_STR, ret);
}

bool prb_type_is(const struct prb_type *type, const char *name)
{
	if (strcmp(type->name, name) != 0)
		return false;
	/* Extension types may be heap types, but keep the module in tp_name; classes do not. */
	return !(type->flags & PRB_PY_HEAP_TYPE) || strchr(name, '.');
}

bool prb_repr_is(struct prb_repr *r, uint64_t object, const char *name)
{
	struct prb_type *type;
	prb_auto_error struct prb_error *err = prb_repr_type_of(r, object, &type);

	return !err && prb_type_is(type, name);
}

bool prb_repr_is_none(struct prb_repr *r, uint64_t object)
{
	return prb_repr_is(r, object, "NoneType");
}

struct prb_error *prb_repr_mro(struct prb_repr *r, const struct prb_type *type, uint64_t *ret,
			       size_t *count)
{
	uint64_t length;

	PRB_TRY(prb_repr_tuple(r, type->mro, ret, PRB_MRO_MAX, &length));
	if (length > PRB_MRO_MAX)
		return prb_repr_bad(type->address, "too many base classes");
	*count = length;
	return NULL;
}

struct prb_error *prb_repr_lookup(struct prb_repr *r, const struct prb_type *type, const char *name,
				  uint64_t *ret, struct prb_type **owner)
{
	uint64_t mro[PRB_MRO_MAX];
	size_t count;

	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = 0; i < count; i++) {
		struct prb_type *class;

		PRB_TRY(prb_repr_type(r, mro[i], &class));
		/* Builtin types keep their dict in the interpreter since 3.12. */
		if (!class->dict)
			continue;

		struct prb_error *err = prb_repr_dict_get(r, class->dict, name, ret);

		if (!err) {
			if (owner)
				*owner = class;
			return NULL;
		}
		if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			return err;
	}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no attribute '%s'", type->name, name);
}

/* An entry of the interpreter's list begins with the address of its type. */
static struct prb_error *interpreters_dict(struct prb_repr *r, const struct prb_type *type,
					   uint64_t *ret)
{
	const struct prb_layout *l = r->layout;
	uint64_t interp, number, entry, address;

	if (!r->py->runtime || l->interp_static_types < 0 || l->type_subclasses < 0 ||
	    l->static_type_dict < 0 || l->static_type_size <= 0 || l->runtime_interpreters < 0)
		return NULL;
	PRB_TRY(prb_repr_word(r, type->address + (uint64_t)l->type_subclasses, &number));
	PRB_TRY(prb_repr_word(r, r->py->runtime + (uint64_t)l->runtime_interpreters, &interp));
	if (!number || number > STATIC_TYPES_MAX)
		return NULL;
	entry = interp + (uint64_t)l->interp_static_types +
		(number - 1) * (uint64_t)l->static_type_size;
	PRB_TRY(prb_repr_word(r, entry, &address));
	if (address != type->address)
		return NULL;
	return prb_repr_word(r, entry + (uint64_t)l->static_type_dict, ret);
}

struct prb_error *prb_repr_class_dict(struct prb_repr *r, const struct prb_type *type,
				      uint64_t *ret)
{
	*ret = type->dict;
	if (*ret || !(type->flags & PRB_PY_STATIC_BUILTIN))
		return NULL;

	struct prb_error *err = interpreters_dict(r, type, ret);

	/* A snapshot may not have it. */
	prb_error_catch(&err, PRB_ERROR_FAULT);
	return err;
}

/* The last part of tp_name. */
static const char *short_name(const struct prb_type *type)
{
	const char *dot = strrchr(type->name, '.');

	return dot ? dot + 1 : type->name;
}

static struct prb_error *put_heap_name(struct prb_repr *r, const struct prb_type *type,
				       int32_t offset)
{
	uint64_t name;

	if (!(type->flags & PRB_PY_HEAP_TYPE) || offset < 0) {
		prb_str_puts(r->out, short_name(type));
		return NULL;
	}
	PRB_TRY(prb_repr_word(r, type->address + (uint64_t)offset, &name));
	return prb_repr_put_text(r, name);
}

struct prb_error *prb_repr_put_name(struct prb_repr *r, const struct prb_type *type)
{
	return put_heap_name(r, type, r->layout->heap_type_name);
}

struct prb_error *prb_repr_put_kind(struct prb_repr *r, const struct prb_type *type,
				    const char *kind)
{
	if (!r->traits->literal_names)
		return prb_repr_put_name(r, type);
	prb_str_puts(r->out, kind);
	return NULL;
}

struct prb_error *prb_repr_put_qualname(struct prb_repr *r, const struct prb_type *type)
{
	return put_heap_name(r, type, r->layout->heap_type_qualname);
}

struct prb_error *prb_repr_put_module(struct prb_repr *r, const struct prb_type *type)
{
	const char *dot = strrchr(type->name, '.');
	uint64_t module;
	bool builtins;

	if (!(type->flags & PRB_PY_HEAP_TYPE)) {
		if (dot)
			prb_str_append(r->out, type->name, (size_t)(dot + 1 - type->name));
		return NULL;
	}

	struct prb_error *err = prb_repr_dict_get(r, type->dict, "__module__", &module);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	PRB_TRY(prb_repr_text_is(r, module, "builtins", &builtins));
	if (builtins)
		return NULL;
	/* A class may have put anything there; only a str is printed. */
	err = prb_repr_put_text(r, module);
	if (prb_error_catch(&err, PRB_ERROR_BAD_DATA))
		return NULL;
	PRB_TRY(err);
	prb_str_putc(r->out, '.');
	return NULL;
}

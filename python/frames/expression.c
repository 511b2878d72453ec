/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/frames/expression.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "python/repr/object_private.h"

enum { LIST = 1 << 25 /* tp_flags */, MAX_PARTS = 256 };

struct search {
	struct prb_repr *r;
	const struct prb_py_frame *frame;
	const char *text, *at; /* the expression, and what is left of it */
	uint64_t object;       /* found so far */
	int looked_into;       /* bytes of what an index or a name stands behind */
	bool computed;	       /* it is a descriptor, whose value Python would compute */
};

static struct prb_error *not_understood(const struct search *s)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE,
				 "'%.200s' cannot be looked up: '%.100s' is not "
				 "understood",
				 s->text, s->at),
		"names, attributes and constant indexes are: self.rows[0]['key']; no code is run");
}

static bool is_name_byte(char c, bool first)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c & 0x80 ||
	       (!first && c >= '0' && c <= '9');
}

static void skip_blanks(struct search *s)
{
	s->at += strspn(s->at, " \t");
}

static struct prb_error *take_name(struct search *s, struct prb_str *ret)
{
	const char *start = s->at;

	while (is_name_byte(*s->at, s->at == start))
		s->at++;
	if (s->at == start)
		return not_understood(s);
	prb_str_append(ret, start, (size_t)(s->at - start));
	return ret->failed ? prb_error_nomem() : NULL;
}

/* Builtins are a module or its dict. */
static struct prb_error *find_builtin(struct search *s, uint64_t globals, const char *name)
{
	struct prb_type *type;
	uint64_t builtins;

	PRB_TRY(prb_repr_dict_get(s->r, globals, "__builtins__", &builtins));
	PRB_TRY(prb_repr_type_of(s->r, builtins, &type));
	if (type->flags & PRB_PY_DICT)
		return prb_repr_dict_get(s->r, builtins, name, &s->object);
	return prb_repr_attribute(s->r, builtins, name, &s->object);
}

static struct prb_error *find_global(struct search *s, const char *name)
{
	uint64_t globals;

	PRB_TRY(prb_python_globals(s->r->py, s->r->mem, s->frame, &globals));

	struct prb_error *err = prb_repr_dict_get(s->r, globals, name, &s->object);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = find_builtin(s, globals, name);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						       "there is no variable '%.200s'", name),
				      "it is neither in this frame, nor global, nor a builtin");
	return err;
}

static struct prb_error *find_name(struct search *s, const char *name)
{
	struct prb_py_locals locals;
	const struct prb_py_local *local;
	bool found = false;

	PRB_TRY(prb_python_locals(s->r->py, s->r->mem, s->frame, &locals));
	prb_vec_each (local, &locals.list) {
		if (strcmp(local->name, name))
			continue;
		found = true;
		s->object = local->object;
	}
	prb_py_locals_deinit(&locals);
	if (!found)
		return find_global(s, name);
	if (s->object)
		return NULL;
	return prb_error_create(PRB_ERROR_NOT_FOUND, "'%.200s' is unbound here", name);
}

/** Whether an object is a descriptor that decides what an instance's attribute is. */
static bool is_data_descriptor(struct search *s, uint64_t object)
{
	struct prb_type *type;
	uint64_t setter;
	prb_auto_error struct prb_error *err = NULL;

	/* The dict of a builtin type may lie where only its interpreter knows. */
	if (prb_repr_is(s->r, object, "property") || prb_repr_is(s->r, object, "getset_descriptor"))
		return true;
	err = prb_repr_type_of(s->r, object, &type);
	if (!err)
		err = prb_repr_lookup(s->r, type, "__set__", &setter, NULL);
	return !err;
}

static struct prb_error *is_computed(const struct search *s, const struct prb_type *type,
				     const char *name)
{
	return prb_error_create(PRB_ERROR_NOT_FOUND,
				"'%.200s' of %.*s, a %s, is computed by code, which is not run",
				name, s->looked_into, s->text, type->name);
}

/* A slot that is not set leaves only what the class has in its place. */
static struct prb_error *find_in_class(struct search *s, const struct prb_type *type,
				       const char *name)
{
	PRB_TRY(prb_repr_lookup(s->r, type, name, &s->object, NULL));
	if (prb_repr_is(s->r, s->object, "member_descriptor"))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it is not set");
	return NULL;
}

/** True, and found, if the class has a data descriptor of that name, which wins in Python. */
static bool find_descriptor(struct search *s, const struct prb_type *type, const char *name)
{
	uint64_t known;
	prb_auto_error struct prb_error *err = prb_repr_lookup(s->r, type, name, &known, NULL);

	/* A slot is read where it lies. */
	if (err || prb_repr_is(s->r, known, "member_descriptor") || !is_data_descriptor(s, known))
		return false;
	s->object = known;
	return s->computed = true;
}

/** What every object or class has, where C code of Python gives it; false if it is not that. */
static bool find_own(struct search *s, const struct prb_type *type, uint64_t object,
		     const char *name)
{
	struct prb_type *self;
	prb_auto_error struct prb_error *err = NULL;

	if (!strcmp(name, "__class__")) {
		uint64_t known;

		/* A class may say something else of its instances. */
		err = prb_repr_lookup(s->r, type, name, &known, NULL);
		if (!err && !prb_repr_is(s->r, known, "getset_descriptor"))
			return false;
		s->object = type->address;
		return true;
	}
	if (!(type->flags & PRB_PY_TYPE) ||
	    (strcmp(name, "__mro__") != 0 && strcmp(name, "__dict__") != 0))
		return false;
	err = prb_repr_type(s->r, object, &self);
	if (err || !(*name && name[2] == 'm' ? self->mro : self->dict))
		return false;
	s->object = name[2] == 'm' ? self->mro : self->dict;
	return true;
}

static bool is_dunder(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && !strncmp(name, "__", 2) && !strcmp(name + length - 2, "__");
}

static struct prb_error *find_attribute(struct search *s, const char *name)
{
	uint64_t object = s->object;
	struct prb_type *type;
	struct prb_error *err;

	PRB_TRY(prb_repr_type_of(s->r, object, &type));
	if (find_own(s, type, object, name))
		return NULL;
	if (find_descriptor(s, type, name))
		return is_dunder(name) ? is_computed(s, type, name) : NULL;
	if (type->flags & PRB_PY_TYPE) {
		struct prb_type *self;

		PRB_TRY(prb_repr_type(s->r, object, &self));
		err = prb_repr_lookup(s->r, self, name, &s->object, NULL);
	} else {
		err = prb_repr_attribute(s->r, object, name, &s->object);
	}
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = find_in_class(s, type, name);
	if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return err;
	if (is_dunder(name))
		return is_computed(s, type, name);
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s, a %s, has no attribute '%.200s'",
				s->looked_into, s->text, type->name, name);
}

/** A property's value is not looked into: it would be that of the property itself. */
static struct prb_error *check_computed(struct search *s)
{
	struct prb_type *type;

	if (!s->computed)
		return NULL;
	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	return prb_error_create(PRB_ERROR_NOT_FOUND,
				"%.*s is a %s: its value is computed by code, which is not run",
				s->looked_into, s->text, type->name);
}

static struct prb_error *find_item(struct search *s, const struct prb_type *type, int64_t index)
{
	uint64_t count, items;

	PRB_TRY(prb_repr_size(s->r, s->object, &count));
	if (type->flags & LIST)
		PRB_TRY(prb_repr_word(s->r, s->object + (uint64_t)s->r->layout->list_items,
				      &items));
	else
		items = s->object + (uint64_t)s->r->layout->tuple_items;
	if (index < 0)
		index += (int64_t)count;
	if (index < 0 || (uint64_t)index >= count)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s has only %llu items",
					s->looked_into, s->text, (unsigned long long)count);
	PRB_TRY(prb_repr_word(s->r, items + (uint64_t)index * 8, &s->object));
	return s->object ? NULL : prb_repr_bad(items, "an item that is not there");
}

struct number_key {
	struct prb_repr *r;
	int64_t wanted;
	uint64_t found;
	struct prb_error *err;
};

static bool visit_key(void *context, uint64_t key, uint64_t value)
{
	struct number_key *k = context;
	struct prb_type *type;
	int64_t number;

	k->err = prb_repr_type_of(k->r, key, &type);
	if (k->err)
		return false;
	if (!(type->flags & PRB_PY_INT))
		return true;
	/* One that is too large for us is another one. */
	k->err = prb_repr_int(k->r, key, &number);
	if (prb_error_catch(&k->err, PRB_ERROR_BAD_DATA))
		return true;
	if (!k->err && number == k->wanted)
		k->found = value;
	return !k->err && !k->found;
}

static struct prb_error *find_number_key(struct search *s, int64_t number)
{
	struct number_key k = {.r = s->r, .wanted = number};
	struct prb_error *err = prb_repr_dict_each(s->r, s->object, visit_key, &k);

	if (err)
		prb_error_destroy(k.err);
	PRB_TRY(err ? err : k.err);
	if (!k.found)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s has no such key", s->looked_into,
					s->text);
	s->object = k.found;
	return NULL;
}

static struct prb_error *find_text_key(struct search *s, const char *key)
{
	struct prb_error *err = prb_repr_dict_get(s->r, s->object, key, &s->object);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s has no such key", s->looked_into,
					s->text);
	return err;
}

static struct prb_error *no_index(const struct search *s, const struct prb_type *type,
				  const char *kind)
{
	return prb_error_create(PRB_ERROR_NOT_FOUND,
				"%.*s: a %s cannot be looked into by a %s without running code",
				s->looked_into, s->text, type->name, kind);
}

static struct prb_error *take_text(struct search *s, struct prb_str *ret)
{
	char quote = *s->at++;
	size_t length = strcspn(s->at, (char[]){quote, '\\', '\0'});

	if (s->at[length] != quote)
		return not_understood(s);
	prb_str_append(ret, s->at, length);
	s->at += length + 1;
	return ret->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *index_text(struct search *s, const struct prb_type *type)
{
	prb_auto_str struct prb_str key = {};

	PRB_TRY(take_text(s, &key));
	return type->flags & PRB_PY_DICT ? find_text_key(s, prb_str_text(&key))
					 : no_index(s, type, "text");
}

static struct prb_error *index_number(struct search *s, const struct prb_type *type)
{
	char *end;

	errno = 0;
	long long number = strtoll(s->at, &end, 10);
	if (end == s->at || errno)
		return not_understood(s);
	s->at = end;
	if (type->flags & PRB_PY_DICT)
		return find_number_key(s, number);
	return type->flags & (LIST | PRB_PY_TUPLE) ? find_item(s, type, number)
						   : no_index(s, type, "number");
}

/* Behind "[". */
static struct prb_error *find_index(struct search *s)
{
	struct prb_type *type;

	skip_blanks(s);
	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	PRB_TRY(*s->at && strchr("'\"", *s->at) ? index_text(s, type) : index_number(s, type));
	skip_blanks(s);
	if (*s->at != ']')
		return not_understood(s);
	s->at++;
	return NULL;
}

static struct prb_error *find_parts(struct search *s)
{
	for (unsigned part = 0;; part++) {
		prb_auto_str struct prb_str name = {};

		s->looked_into = (int)(s->at - s->text);
		skip_blanks(s);
		if (!*s->at)
			return NULL;
		if (part == MAX_PARTS)
			return not_understood(s);
		if (strchr(".[", *s->at))
			PRB_TRY(check_computed(s));
		s->computed = false;
		if (*s->at == '[') {
			s->at++;
			PRB_TRY(find_index(s));
			continue;
		}
		if (*s->at != '.')
			return not_understood(s);
		s->at++;
		skip_blanks(s);
		PRB_TRY(take_name(s, &name));
		PRB_TRY(find_attribute(s, prb_str_text(&name)));
	}
}

struct prb_error *prb_python_find(struct prb_python *py, struct prb_mem *mem,
				  const struct prb_py_frame *frame, const char *expression,
				  uint64_t *ret)
{
	prb_auto_str struct prb_str unused = {}, name = {};
	prb_auto_repr struct prb_repr r;
	struct search s = {.r = &r, .frame = frame, .text = expression, .at = expression};

	prb_repr_init(&r, py, mem, NULL, &unused);
	if (strlen(expression) > PRB_EXPRESSION_MAX)
		return prb_error_create(PRB_ERROR_USAGE, "the expression has over %d bytes",
					PRB_EXPRESSION_MAX);
	skip_blanks(&s);
	PRB_TRY(take_name(&s, &name));
	PRB_TRY(find_name(&s, prb_str_text(&name)));
	PRB_TRY(find_parts(&s));
	*ret = s.object;
	return NULL;
}

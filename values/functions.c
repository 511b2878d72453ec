/* SPDX-License-Identifier: GPL-3.0-or-later */
/* len(), vars() and dir() of an object, where they run no code of the program. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/arrays/tensor.h"
#include "values/expression_private.h"

enum { NAME_CHARACTERS = 1000, NAMES_MAX = 100000 };

/* Where a length lies. */
enum place { AT_SIZE, AT_UNICODE, AT_DICT, AT_SET, AT_RANGE, AT_SHAPE, AT_TENSOR };

static const struct {
	const char *type;
	enum place place;
} sized[] = {
	{"array.array", AT_SIZE},
	{"bytearray", AT_SIZE},
	{"bytes", AT_SIZE},
	{"collections.deque", AT_SIZE},
	{"dict", AT_DICT},
	{"frozenset", AT_SET},
	{"list", AT_SIZE},
	{"range", AT_RANGE},
	{"set", AT_SET},
	{"str", AT_UNICODE},
	{"tuple", AT_SIZE},
	{"numpy.ndarray", AT_SHAPE},
	{"torch._C.TensorBase", AT_TENSOR},
	{"torch._C._TensorBase", AT_TENSOR},
};

static struct prb_error *read_length(struct prb_search *s, enum place place, int64_t *ret)
{
	const struct prb_layout *l = s->r->layout;
	struct prb_tensor tensor;
	uint64_t word;

	switch (place) {
	case AT_SIZE:
		PRB_TRY(prb_repr_size(s->r, s->object, (uint64_t *)ret));
		return NULL;
	case AT_UNICODE:
		return prb_repr_word(s->r, s->object + (uint64_t)l->unicode_length,
				     (uint64_t *)ret);
	case AT_DICT:
		return prb_repr_dict_size(s->r, s->object, (uint64_t *)ret);
	case AT_SET: /* after the count of slots that are or were in use */
		return prb_repr_member(s->r, s->object, 1, (uint64_t *)ret);
	case AT_RANGE: /* behind start, stop and step */
		PRB_TRY(prb_repr_member(s->r, s->object, 3, &word));
		return prb_repr_int(s->r, word, ret);
	case AT_SHAPE:
		PRB_TRY(prb_ndarray_read(s->r, s->object, &s->array));
		if (!s->array.dimensions)
			break;
		*ret = (int64_t)s->array.shape[0];
		return NULL;
	case AT_TENSOR:
		PRB_TRY(prb_tensor_read(s->r->py, s->r->mem, s->object, &tensor));
		if (!tensor.dimensions)
			break;
		*ret = (int64_t)tensor.shape[0];
		return NULL;
	}
	return prb_repr_bad(s->object, "no length");
}

static struct prb_error *find_length(struct prb_search *s, const struct prb_type *type,
				     int64_t *ret)
{
	uint64_t mro[PRB_MRO_MAX];
	size_t count;

	PRB_TRY(prb_repr_mro(s->r, type, mro, &count));
	for (size_t i = 0; i < count; i++) {
		struct prb_type *base;

		PRB_TRY(prb_repr_type(s->r, mro[i], &base));
		for (size_t j = 0; j < PRB_ARRAY_SIZE(sized); j++)
			if (prb_type_is(base, sized[j].type))
				return read_length(s, sized[j].place, ret);
	}
	return prb_search_needs_code(s, "the length of a %s only code could tell", type->name);
}

struct prb_error *prb_search_len(struct prb_search *s)
{
	struct prb_type *type;
	uint64_t method = 0;
	int64_t length = 0;
	bool known = false;

	PRB_TRY(prb_search_hidden(s, &known));
	if (known)
		return NULL;
	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	if (type->flags & PRB_PY_HEAP_TYPE)
		PRB_TRY(prb_search_class(s, type, "__len__", &method, NULL));
	if (method && prb_repr_is(s->r, method, "function")) {
		PRB_TRY(prb_known_container(s, method, &known));
		if (!known)
			return prb_search_needs_code(s, "the __len__ of %s is code", type->name);
		PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	}
	PRB_TRY(find_length(s, type, &length));
	s->object = 0;
	s->type = "int";
	prb_str_printf(&s->value, "%lld", (long long)length);
	return NULL;
}

/* Names with what belongs to them, in the order that they were found. */
struct named {
	char *name; /* "" for a key that is no str */
	uint64_t key, object;
	char *text;
};

struct names {
	struct prb_search *s;
	PRB_VEC(struct named) list;
	struct prb_error *err;
};

static void names_guard(struct names *names)
{
	struct named *named;

	prb_vec_each (named, &names->list) {
		free(named->name);
		free(named->text);
	}
	prb_vec_free(&names->list);
	prb_error_destroy(names->err);
}

#define auto_names __attribute__((cleanup(names_guard)))

static bool add(void *context, const struct prb_attribute *attribute)
{
	struct names *names = context;
	struct named *slot = names->list.count < NAMES_MAX ? prb_vec_push(&names->list) : NULL;

	if (!slot) {
		names->err = names->list.count < NAMES_MAX
				     ? prb_error_nomem()
				     : prb_error_create(PRB_ERROR_BAD_DATA, "too many attributes");
		return false;
	}
	*slot = (struct named){.key = attribute->key, .object = attribute->object};
	names->err = prb_str_copy(attribute->name, &slot->name);
	if (!names->err && attribute->text)
		names->err = prb_str_copy(attribute->text, &slot->text);
	return !names->err;
}

static struct prb_error *collect(struct names *names, unsigned kinds)
{
	struct prb_search *s = names->s;

	PRB_TRY(prb_repr_attributes(s->r, s->object, kinds, add, names));
	return prb_steal(&names->err);
}

void prb_search_begin_text(struct prb_search *s, const char *type)
{
	s->object = 0;
	s->type = type;
	s->r->out = &s->value;
	s->r->start = 0;
	s->r->nest[s->r->depth] = 0;
	s->r->instances &= ~(UINT64_C(1) << s->r->depth);
	s->r->depth++;
}

static struct prb_error *put_vars(struct names *names)
{
	struct prb_repr *r = names->s->r;
	struct prb_items items = {.r = r, .total = names->list.count};

	prb_str_putc(r->out, '{');
	while (prb_items_next(&items)) {
		const struct named *named = &names->list.items[items.done - 1];

		PRB_TRY(prb_repr_object(r, named->key));
		prb_str_puts(r->out, ": ");
		if (named->text)
			prb_str_puts(r->out, named->text);
		else
			PRB_TRY(prb_repr_object(r, named->object));
	}
	prb_str_putc(r->out, '}');
	prb_repr_cut(r);
	return NULL;
}

struct prb_error *prb_search_vars(struct prb_search *s)
{
	auto_names struct names names = {.s = s};
	struct prb_type *type;
	uint64_t dict;

	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	if (type->flags & PRB_PY_TYPE) {
		struct prb_type *self;
		bool hidden;

		PRB_TRY(prb_search_hidden(s, &hidden));
		if (hidden)
			return NULL;
		if (prb_repr_hides_defaults(s->r, s->object)) {
			PRB_TRY(collect(&names, PRB_ATTRIBUTE_DICT));
			prb_search_begin_text(s, "dict");
			return put_vars(&names);
		}
		PRB_TRY(prb_repr_type(s->r, s->object, &self));
		PRB_TRY(prb_repr_class_dict(s->r, self, &dict));
		s->object = dict ? dict : s->object;
		return dict ? NULL : prb_search_needs_code(s, "its names only code could tell");
	}
	PRB_TRY(collect(&names, PRB_ATTRIBUTE_DICT));
	if (!names.list.count && !prb_repr_has_dict(s->r, type))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s: %s objects have no __dict__",
					s->looked_into, s->from, type->name);
	prb_search_begin_text(s, "dict");
	return put_vars(&names);
}

static bool add_key(void *context, uint64_t key, uint64_t value)
{
	struct names *names = context;
	prb_auto_str struct prb_str name = {};
	struct prb_error *err = prb_repr_text(names->s->r, key, NAME_CHARACTERS, &name);

	if (prb_error_catch(&err, PRB_ERROR_BAD_DATA)) /* no str */
		return true;
	names->err = err;
	return !err &&
	       add(names, &(struct prb_attribute){
				  .name = prb_str_text(&name), .key = key, .object = value});
}

static struct prb_error *collect_class(struct names *names, const struct prb_type *type)
{
	struct prb_search *s = names->s;
	uint64_t mro[PRB_MRO_MAX], dict;
	size_t count;

	PRB_TRY(prb_repr_mro(s->r, type, mro, &count));
	for (size_t i = 0; i < count; i++) {
		struct prb_type *class;

		PRB_TRY(prb_repr_type(s->r, mro[i], &class));
		PRB_TRY(prb_repr_class_dict(s->r, class, &dict));
		if (dict)
			PRB_TRY(prb_repr_dict_each(s->r, dict, add_key, names));
		PRB_TRY(prb_steal(&names->err));
	}
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static struct prb_error *put_names(struct names *names)
{
	struct prb_repr *r = names->s->r;
	struct prb_items items = {.r = r};
	const char *last = "";

	if (names->list.count)
		qsort(names->list.items, names->list.count, sizeof(struct named), by_name);
	for (size_t i = 0; i < names->list.count; i++)
		items.total += !i || by_name(&names->list.items[i], &names->list.items[i - 1]);
	prb_str_putc(r->out, '[');
	for (size_t i = 0; i < names->list.count; i++) {
		prb_auto_str struct prb_str name = {};

		if (i && !strcmp(names->list.items[i].name, last))
			continue;
		if (!prb_items_next(&items))
			break;
		last = names->list.items[i].name;
		prb_str_puts(&name, last);
		PRB_TRY(prb_repr_quote_raw(r, &name));
	}
	prb_str_putc(r->out, ']');
	prb_repr_cut(r);
	return NULL;
}

/* dir() of a class leaves out what its own class has. */
struct prb_error *prb_search_dir(struct prb_search *s)
{
	auto_names struct names names = {.s = s};
	struct prb_type *type, *self;
	uint64_t method;

	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	PRB_TRY(prb_search_class(s, type, "__dir__", &method, NULL));
	if (method && prb_repr_is(s->r, method, "function"))
		return prb_search_needs_code(s, "the __dir__ of %s is code", type->name);
	if (type->flags & PRB_PY_TYPE) {
		PRB_TRY(prb_repr_type(s->r, s->object, &self));
		PRB_TRY(collect_class(&names, self));
	} else {
		PRB_TRY(collect(&names, PRB_ATTRIBUTE_DICT));
		if (!prb_type_is(type, "module"))
			PRB_TRY(collect_class(&names, type));
	}
	prb_search_begin_text(s, "list");
	return put_names(&names);
}

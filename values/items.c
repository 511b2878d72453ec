/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An item of a container, by a number or a text. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "values/expression_private.h"

static struct prb_error *no_index(const struct prb_search *s, const struct prb_type *type,
				  const char *kind)
{
	return prb_error_create(PRB_ERROR_NOT_FOUND,
				"%.*s: a %s cannot be looked into by a %s without running code",
				s->looked_into, s->from, type->name, kind);
}

static struct prb_error *no_key(const struct prb_search *s)
{
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s has no such key", s->looked_into,
				s->from);
}

/*
 * The type of what has the items: of the object, or of what it is known to keep them in (*kept). An
 * error if a __getitem__ of the program decides.
 */
static struct prb_error *find_container(struct prb_search *s, struct prb_type **ret, bool *kept)
{
	uint64_t method;

	*kept = false;
	PRB_TRY(prb_repr_type_of(s->r, s->object, ret));
	if (!((*ret)->flags & PRB_PY_HEAP_TYPE))
		return NULL;

	struct prb_error *err = prb_search_class(s, *ret, "__getitem__", &method, NULL);

	if (prb_error_catch(&err, PRB_ERROR_FAULT))
		return NULL;
	PRB_TRY(err);
	if (!method || !prb_repr_is(s->r, method, "function"))
		return NULL;
	PRB_TRY(prb_known_container(s, method, kept));
	if (*kept)
		return prb_repr_type_of(s->r, s->object, ret);
	return prb_search_needs_code(s, "the __getitem__ of %s is code", (*ret)->name);
}

struct prb_error *prb_search_text_item(struct prb_search *s, const char *key)
{
	struct prb_type *type;
	bool done, kept;

	PRB_TRY(prb_search_hidden(s, &done));
	if (!done)
		PRB_TRY(prb_known_column(s, key, &done));
	if (done)
		return NULL;
	PRB_TRY(find_container(s, &type, &kept));
	if (!(type->flags & PRB_PY_DICT))
		return no_index(s, type, "text");

	struct prb_error *err = prb_repr_dict_get(s->r, s->object, key, &s->object);

	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? no_key(s) : err;
}

/* From the end if it is negative. */
static struct prb_error *check_index(const struct prb_search *s, uint64_t count, int64_t *index)
{
	if (*index < 0)
		*index += (int64_t)count;
	if (*index >= 0 && (uint64_t)*index < count)
		return NULL;
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s has only %llu items", s->looked_into,
				s->from, (unsigned long long)count);
}

static struct prb_error *take_item(struct prb_search *s, const struct prb_type *type, int64_t index)
{
	uint64_t count, items;

	PRB_TRY(prb_repr_size(s->r, s->object, &count));
	PRB_TRY(check_index(s, count, &index));
	if (type->flags & PRB_PY_LIST)
		PRB_TRY(prb_repr_word(s->r, s->object + (uint64_t)s->r->layout->list_items,
				      &items));
	else
		items = s->object + (uint64_t)s->r->layout->tuple_items;
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
	/* A number that is too large for us is another key. */
	k->err = prb_repr_int(k->r, key, &number);
	if (prb_error_catch(&k->err, PRB_ERROR_BAD_DATA))
		return true;
	if (!k->err && number == k->wanted)
		k->found = value;
	return !k->err && !k->found;
}

static struct prb_error *find_number_key(struct prb_search *s, int64_t number)
{
	struct number_key k = {.r = s->r, .wanted = number};
	struct prb_error *err = prb_repr_dict_each(s->r, s->object, visit_key, &k);

	if (err)
		prb_error_destroy(k.err);
	PRB_TRY(err ? err : k.err);
	if (!k.found)
		return no_key(s);
	s->object = k.found;
	return NULL;
}

/* torch numbers modules in texts: '0', '1', … */
static struct prb_error *find_numbered(struct prb_search *s, int64_t number)
{
	uint64_t count;
	char key[32];

	PRB_TRY(prb_repr_dict_size(s->r, s->object, &count));
	PRB_TRY(check_index(s, count, &number));
	snprintf(key, sizeof(key), "%lld", (long long)number);
	return prb_search_text_item(s, key);
}

static struct prb_error *take_from_deque(struct prb_search *s, int64_t index)
{
	uint64_t count;

	PRB_TRY(prb_repr_size(s->r, s->object, &count));
	PRB_TRY(check_index(s, count, &index));
	return prb_repr_deque_item(s->r, s->object, (uint64_t)index, &s->object);
}

static bool is_array(struct prb_search *s, const struct prb_type *type)
{
	uint64_t mro[PRB_MRO_MAX];
	struct prb_type *base;
	size_t count;
	prb_auto_error struct prb_error *err = prb_repr_mro(s->r, type, mro, &count);

	for (size_t i = 0; !err && i < count; i++) {
		err = prb_repr_type(s->r, mro[i], &base);
		if (!err && prb_type_is(base, "numpy.ndarray"))
			return true;
	}
	return false;
}

struct prb_error *prb_search_array_item(struct prb_search *s, int64_t number)
{
	const struct prb_ndarray *array = &s->array;

	if (!array->dimensions)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s has no items", s->looked_into,
					s->from);
	PRB_TRY(check_index(s, array->shape[0], &number));
	prb_ndarray_enter(&s->array, (uint64_t)number);
	s->view = PRB_SEARCH_ARRAY;
	if (array->dimensions)
		return NULL;
	s->view = PRB_SEARCH_OBJECT;
	if (prb_dtype_is_object(&array->dtype))
		return prb_repr_word(s->r, array->data, &s->object);
	if (!prb_dtype_is_printable(&array->dtype))
		return prb_search_needs_code(s, "its items are of a type that is not known");
	prb_search_begin_text(s, "numpy scalar");
	return prb_ndarray_put_item(s->r, &array->dtype, array->data);
}

struct prb_error *prb_search_number_item(struct prb_search *s, int64_t number)
{
	struct prb_type *type;
	bool hidden, kept;

	PRB_TRY(prb_search_hidden_item(s, &hidden));
	if (hidden)
		return NULL;
	PRB_TRY(find_container(s, &type, &kept));
	if (type->flags & (PRB_PY_LIST | PRB_PY_TUPLE))
		return take_item(s, type, number);
	if (prb_type_is(type, "collections.deque"))
		return take_from_deque(s, number);
	if (is_array(s, type)) {
		PRB_TRY(prb_ndarray_read(s->r, s->object, &s->array));
		return prb_search_array_item(s, number);
	}
	if (!(type->flags & PRB_PY_DICT))
		return no_index(s, type, "number");

	struct prb_error *err = find_number_key(s, number);

	/* Containers that are indexed by number here have texts as keys. */
	return kept && prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? find_numbered(s, number) : err;
}

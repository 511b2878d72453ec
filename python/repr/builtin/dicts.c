/* SPDX-License-Identifier: GPL-3.0-or-later */
/* dict and its views, defaultdict, OrderedDict, mappingproxy and SimpleNamespace. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

/* The printed part of an entry. */
enum form {
	FORM_ENTRY, /* key: value */
	FORM_KEY,
	FORM_VALUE,
	FORM_PAIR,  /* (key, value) */
	FORM_FIELD, /* key=value, where the key is a str */
};

struct printing {
	struct prb_items items;
	enum form form;
	struct prb_error *err;
};

static struct prb_error *put_entry(struct prb_repr *r, enum form form, uint64_t key, uint64_t value)
{
	switch (form) {
	case FORM_ENTRY:
		PRB_TRY(prb_repr_object(r, key));
		prb_str_puts(r->out, ": ");
		return prb_repr_object(r, value);
	case FORM_KEY:
		return prb_repr_object(r, key);
	case FORM_VALUE:
		return prb_repr_object(r, value);
	case FORM_PAIR:
		prb_str_putc(r->out, '(');
		PRB_TRY(prb_repr_object(r, key));
		prb_str_puts(r->out, ", ");
		PRB_TRY(prb_repr_object(r, value));
		prb_str_putc(r->out, ')');
		return NULL;
	case FORM_FIELD:
		PRB_TRY(prb_repr_put_text(r, key));
		prb_str_putc(r->out, '=');
		return prb_repr_object(r, value);
	}
	return NULL;
}

static bool print_entry(void *context, uint64_t key, uint64_t value)
{
	struct printing *printing = context;

	if (!prb_items_next(&printing->items))
		return false;
	printing->err = put_entry(printing->items.r, printing->form, key, value);
	return !printing->err;
}

static struct prb_error *put_entries(struct prb_repr *r, uint64_t dict, enum form form)
{
	struct printing printing = {.items = {.r = r}, .form = form};

	PRB_TRY(prb_repr_dict_size(r, dict, &printing.items.total));

	struct prb_error *err = prb_repr_dict_each(r, dict, print_entry, &printing);

	if (err) {
		prb_error_destroy(printing.err);
		return err;
	}
	return printing.err;
}

static struct prb_error *put_dict(struct prb_repr *r, uint64_t dict)
{
	prb_str_putc(r->out, '{');
	PRB_TRY(put_entries(r, dict, FORM_ENTRY));
	prb_str_putc(r->out, '}');
	return NULL;
}

struct prb_error *prb_repr_handle_dict(struct prb_repr *r, uint64_t object,
				       struct prb_type *type __attribute__((unused)))
{
	if (!prb_repr_enter(r, object, "{...}"))
		return NULL;
	PRB_TRY(put_dict(r, object));
	prb_repr_leave(r);
	return NULL;
}

static struct prb_error *put_view(struct prb_repr *r, uint64_t object, struct prb_type *type,
				  enum form form)
{
	struct prb_type *its;
	uint64_t dict;

	PRB_TRY(prb_repr_member(r, object, 0, &dict));
	PRB_TRY(prb_repr_type_of(r, dict, &its));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_puts(r->out, "([");
	if (prb_repr_hides_all(r, its))
		prb_str_puts(r->out, PRB_REPR_HIDDEN);
	else
		PRB_TRY(put_entries(r, dict, form));
	prb_str_puts(r->out, "])");
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_handle_dict_keys(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	return put_view(r, object, type, FORM_KEY);
}

struct prb_error *prb_repr_handle_dict_values(struct prb_repr *r, uint64_t object,
					      struct prb_type *type)
{
	return put_view(r, object, type, FORM_VALUE);
}

struct prb_error *prb_repr_handle_dict_items(struct prb_repr *r, uint64_t object,
					     struct prb_type *type)
{
	return put_view(r, object, type, FORM_PAIR);
}

/* sizeof(PyDictObject): what a subclass in C adds lies behind it. */
static struct prb_error *dict_end(struct prb_repr *r, const struct prb_type *type, uint64_t *ret)
{
	uint64_t mro[PRB_MRO_MAX];
	size_t count;

	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = 0; i < count; i++) {
		struct prb_type *base;

		PRB_TRY(prb_repr_type(r, mro[i], &base));
		if (prb_type_is(base, "dict")) {
			*ret = (uint64_t)base->basicsize;
			return NULL;
		}
	}
	return prb_repr_bad(type->address, "not a dict");
}

struct prb_error *prb_repr_handle_defaultdict(struct prb_repr *r, uint64_t object,
					      struct prb_type *type)
{
	uint64_t end, factory;

	PRB_TRY(dict_end(r, type, &end));
	PRB_TRY(prb_repr_word(r, object + end, &factory));
	PRB_TRY(prb_repr_put_kind(r, type, "defaultdict"));
	prb_str_putc(r->out, '(');
	if (factory)
		PRB_TRY(prb_repr_object(r, factory));
	else
		prb_str_puts(r->out, "None");
	prb_str_puts(r->out, ", ");
	PRB_TRY(prb_repr_handle_dict(r, object, type));
	prb_str_putc(r->out, ')');
	return NULL;
}

struct value_search {
	uint64_t key, value;
};

static bool same_key(void *context, uint64_t key, uint64_t value)
{
	struct value_search *search = context;

	if (key != search->key)
		return true;
	search->value = value;
	return false;
}

struct prb_error *prb_repr_value_of(struct prb_repr *r, uint64_t dict, uint64_t key, uint64_t *ret)
{
	struct value_search search = {.key = key};

	PRB_TRY(prb_repr_dict_each(r, dict, same_key, &search));
	if (!search.value)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no such key");
	*ret = search.value;
	return NULL;
}

/* The order is in a linked list of nodes (key, hash, next, previous), the values in the dict. */
static struct prb_error *put_ordered(struct prb_repr *r, uint64_t object, uint64_t node,
				     enum form form)
{
	struct prb_items items = {.r = r};

	PRB_TRY(prb_repr_dict_size(r, object, &items.total));
	while (prb_items_next(&items)) {
		uint64_t words[3], value;

		PRB_TRY(prb_repr_words(r, node, 3, words));
		node = words[2];
		PRB_TRY(prb_repr_value_of(r, object, words[0], &value));
		PRB_TRY(put_entry(r, form, words[0], value));
	}
	return NULL;
}

struct prb_error *prb_repr_handle_ordered_dict(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	bool as_dict = r->traits->odict_as_dict;
	uint64_t end, first, count;

	PRB_TRY(dict_end(r, type, &end));
	PRB_TRY(prb_repr_word(r, object + end, &first));
	PRB_TRY(prb_repr_dict_size(r, object, &count));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	if (count) {
		prb_str_puts(r->out, as_dict ? "{" : "[");
		PRB_TRY(put_ordered(r, object, first, as_dict ? FORM_ENTRY : FORM_PAIR));
		prb_str_puts(r->out, as_dict ? "}" : "]");
	}
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_put_fields(struct prb_repr *r, uint64_t dict)
{
	return put_entries(r, dict, FORM_FIELD);
}

struct prb_error *prb_repr_handle_mappingproxy(struct prb_repr *r, uint64_t object,
					       struct prb_type *type __attribute__((unused)))
{
	uint64_t mapping;

	PRB_TRY(prb_repr_member(r, object, 0, &mapping));
	prb_str_puts(r->out, "mappingproxy(");
	PRB_TRY(prb_repr_object(r, mapping));
	prb_str_putc(r->out, ')');
	return NULL;
}

struct named {
	char *name;
	uint64_t value;
};

struct sorting {
	struct prb_repr *r;
	PRB_VEC(struct named) entries;
	struct prb_error *err;
};

static void sorting_guard(struct sorting *sorting)
{
	struct named *entry;

	prb_vec_each (entry, &sorting->entries)
		free(entry->name);
	prb_vec_free(&sorting->entries);
}

static bool collect_named(void *context, uint64_t key, uint64_t value)
{
	enum { NAME_MAX_CHARACTERS = 200, NAMES_MAX = 1 << 16 };
	struct sorting *sorting = context;
	prb_auto_str struct prb_str name = {};

	if (sorting->entries.count >= NAMES_MAX) {
		sorting->err = prb_repr_bad(key, "more attributes than we sort");
		return false;
	}

	struct named *entry = prb_vec_push(&sorting->entries);

	if (!entry) {
		sorting->err = prb_error_nomem();
		return false;
	}
	sorting->err = prb_repr_text(sorting->r, key, NAME_MAX_CHARACTERS, &name);
	if (sorting->err)
		return false;
	*entry = (struct named){.name = prb_str_take(&name), .value = value};
	if (!entry->name)
		sorting->err = prb_error_nomem();
	return !sorting->err;
}

static int by_name(const void *a, const void *b)
{
	const struct named *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static struct prb_error *put_sorted_fields(struct prb_repr *r, uint64_t dict)
{
	__attribute__((cleanup(sorting_guard))) struct sorting sorting = {.r = r};
	struct prb_items items = {.r = r};
	struct prb_error *err = prb_repr_dict_each(r, dict, collect_named, &sorting);

	if (err) {
		prb_error_destroy(sorting.err);
		return err;
	}
	PRB_TRY(sorting.err);
	items.total = sorting.entries.count;
	if (items.total)
		qsort(sorting.entries.items, items.total, sizeof(struct named), by_name);
	while (prb_items_next(&items)) {
		prb_str_printf(r->out, "%s=", sorting.entries.items[items.done - 1].name);
		PRB_TRY(prb_repr_object(r, sorting.entries.items[items.done - 1].value));
	}
	return NULL;
}

struct prb_error *prb_repr_handle_namespace(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	uint64_t dict;

	PRB_TRY(prb_repr_member(r, object, 0, &dict));

	bool plain = prb_type_is(type, "types.SimpleNamespace");

	if (plain)
		prb_str_puts(r->out, "namespace");
	else
		PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	if (prb_repr_enter(r, object, "...")) {
		PRB_TRY(r->traits->namespace_sorted ? put_sorted_fields(r, dict)
						    : prb_repr_put_fields(r, dict));
		prb_repr_leave(r);
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

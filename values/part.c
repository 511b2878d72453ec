/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/part.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/expression_private.h"

enum { ITEMS = 100 };

struct prb_parts {
	struct prb_repr repr;
	struct prb_str unused;
	struct prb_part_answer answer;
	struct prb_class_cache cache;
};

struct prb_error *prb_parts_create(struct prb_python *py, struct prb_mem *mem,
				   struct prb_parts **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return prb_error_nomem();
	prb_repr_init(&(*ret)->repr, py, mem, NULL, &(*ret)->unused);
	return NULL;
}

void prb_parts_destroy(struct prb_parts *parts)
{
	if (!parts)
		return;
	prb_repr_deinit(&parts->repr);
	prb_str_deinit(&parts->unused);
	prb_str_deinit(&parts->answer.text);
	free(parts);
}

static void clear_cache(struct prb_parts *parts)
{
	for (size_t i = 0; i < PRB_CLASS_CACHE_SIZE; i++)
		parts->cache.entries[i].type = 0;
}

void prb_parts_forget(struct prb_parts *parts)
{
	prb_repr_deinit(&parts->repr);
	clear_cache(parts);
}

static struct prb_error *take_float(struct prb_parts *parts, uint64_t object)
{
	uint64_t bits;

	PRB_TRY(prb_repr_member(&parts->repr, object, 0, &bits));
	memcpy(&parts->answer.real, &bits, sizeof(bits));
	parts->answer.kind = PRB_PART_FLOAT;
	return NULL;
}

static struct prb_error *take_int(struct prb_parts *parts, const struct prb_type *type,
				  uint64_t object)
{
	struct prb_error *err = prb_repr_int(&parts->repr, object, &parts->answer.integer);

	parts->answer.kind = prb_type_is(type, "bool") ? PRB_PART_BOOL : PRB_PART_INT;
	if (prb_error_catch(&err, PRB_ERROR_BAD_DATA))
		parts->answer.kind = PRB_PART_LARGE;
	return err;
}

/*
 * Reads the kind of the object, and its number if it is one. Only exact types: others may define
 * what they equal.
 */
static struct prb_error *classify(struct prb_parts *parts, uint64_t object)
{
	struct prb_part_answer *a = &parts->answer;
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(&parts->repr, object, &type));
	a->object = object;
	a->type = type->address;
	a->kind = PRB_PART_OTHER;
	if (type->flags & PRB_PY_HEAP_TYPE)
		return NULL;
	if (prb_type_is(type, "float"))
		return take_float(parts, object);
	if (type->flags & PRB_PY_INT)
		return take_int(parts, type, object);
	if (prb_type_is(type, "str"))
		a->kind = PRB_PART_STR;
	if (prb_type_is(type, "NoneType"))
		a->kind = PRB_PART_NONE;
	return NULL;
}

static struct prb_error *check(struct prb_parts *parts, const struct prb_part_wanted *wanted)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_nameless_type_of(&parts->repr, wanted->object, &type));
	if (!wanted->type || wanted->type == type->address)
		return NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA, "another object is at %#llx by now",
				(unsigned long long)wanted->object);
}

static struct prb_error *put_repr(struct prb_parts *parts, const struct prb_part_wanted *wanted)
{
	struct prb_part_answer *a = &parts->answer;
	unsigned items =
		wanted->index > 0 && wanted->index < INT32_MAX ? (unsigned)wanted->index : ITEMS;
	struct prb_repr_options options = {
		.max_items = items,
		.max_objects = 1,
		.max_attributes = items,
		.max_text = (unsigned)PRB_MIN(wanted->text_max, (size_t)INT32_MAX),
		.max_total = (unsigned)PRB_MIN(wanted->text_max, (size_t)INT32_MAX),
		.marked = true,
	};

	a->kind = PRB_PART_WORDS;
	prb_repr_again(&parts->repr, &options, &a->text);

	struct prb_error *err = prb_repr_object(&parts->repr, wanted->object);

	prb_repr_cut(&parts->repr);
	prb_repr_again(&parts->repr, NULL, &parts->unused);
	return err;
}

static struct prb_error *find(struct prb_search *s, const struct prb_part_wanted *wanted)
{
	struct prb_type *type;

	switch (wanted->part) {
	case PRB_PART_ATTRIBUTE:
		return prb_search_attribute(s, wanted->name);
	case PRB_PART_KEY:
		return prb_search_text_item(s, wanted->name);
	case PRB_PART_INDEX:
		return prb_search_number_item(s, wanted->index);
	case PRB_PART_LENGTH:
		return prb_search_len(s);
	case PRB_PART_TYPE:
		PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
		s->object = type->address;
		return NULL;
	case PRB_PART_SELF:
	case PRB_PART_REPR:
	case PRB_PART_TEXT:
		break;
	}
	return NULL;
}

static struct prb_error *read_part(struct prb_parts *parts, const struct prb_part_wanted *wanted,
				   bool *needs_code)
{
	static const char *const what = "the object";
	static const struct prb_py_scope nowhere = {};
	struct prb_type *type;
	struct prb_search s = {
		.r = &parts->repr,
		.cache = &parts->cache,
		.scope = &nowhere,
		.text = what,
		.at = what,
		.from = what,
		.looked_into = (int)strlen(what),
		.object = wanted->object,
		.value = parts->answer.text,
		.needs_code = needs_code,
	};

	PRB_TRY(check(parts, wanted));
	if (wanted->part == PRB_PART_REPR)
		return put_repr(parts, wanted);
	if (wanted->part == PRB_PART_TEXT) {
		parts->answer.kind = PRB_PART_WORDS;
		PRB_TRY(prb_repr_type_of(&parts->repr, wanted->object, &type));
		if (prb_repr_hides_all(&parts->repr, type)) {
			prb_str_puts(&parts->answer.text, PRB_REPR_HIDDEN);
			return NULL;
		}
		return prb_repr_raw_text(&parts->repr, wanted->object, wanted->text_max,
					 &parts->answer.text);
	}

	struct prb_error *err = find(&s, wanted);

	if (!err)
		err = prb_search_end_view(&s, false);
	parts->answer.text = s.value;
	PRB_TRY(err);
	if (s.object)
		return classify(parts, s.object);
	parts->answer.kind = PRB_PART_WORDS;
	return NULL;
}

struct prb_error *prb_parts_read(struct prb_parts *parts, const struct prb_part_wanted *wanted,
				 const struct prb_part_answer **ret, bool *needs_code)
{
	struct prb_part_answer *a = &parts->answer;

	prb_str_truncate(&a->text, 0);
	*a = (struct prb_part_answer){.text = a->text};
	*ret = a;
	*needs_code = false;
	prb_repr_again(&parts->repr, NULL, &parts->unused);
	/* The cache points to types, of which too many were just freed. */
	if (!parts->repr.types.count)
		clear_cache(parts);
	PRB_TRY(read_part(parts, wanted, needs_code));
	return a->text.failed ? prb_error_nomem() : NULL;
}

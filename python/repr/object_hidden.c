/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attributes that the class of an object leaves out of its repr(): passwords and the like. The
 * fields of dataclasses, of attrs and of pydantic's models say so, each in a place of its own;
 * pydantic's SecretStr and its like have a method that gives the value away. No code runs.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/object_private.h"

enum { MAX_FIELDS = 1000 };

/* Where classes describe their fields, by name in a dict or one after the other in a tuple, and
 * what of the description has `repr`; NULL: itself. */
static const struct place {
	const char *name, *part;
} places[] = {
	{"__dataclass_fields__", NULL}, {"__attrs_attrs__", NULL},
	{"__pydantic_fields__", NULL}, /* pydantic 2.10 and later */
	{"model_fields", NULL},	       /* 2.0 to 2.9 */
	{"__fields__", "field_info"},  /* 1 */
};

static struct prb_error *find_in_tuple(struct prb_repr *r, uint64_t tuple, const char *name,
				       uint64_t *ret)
{
	uint64_t items[MAX_FIELDS], count, its;
	bool same = false;

	PRB_TRY(prb_repr_tuple(r, tuple, items, MAX_FIELDS, &count));
	for (uint64_t i = 0; i < PRB_MIN(count, (uint64_t)MAX_FIELDS) && !same; i++) {
		*ret = items[i];
		PRB_TRY(prb_repr_attribute(r, items[i], "name", &its));
		PRB_TRY(prb_repr_text_is(r, its, name, &same));
	}
	return same ? NULL : prb_error_create(PRB_ERROR_NOT_FOUND, "no such field");
}

/* Whether the description says repr=False, and nothing else that is no code. */
static struct prb_error *is_left_out(struct prb_repr *r, uint64_t fields, const struct place *place,
				     const char *name, bool *ret)
{
	uint64_t field, value;
	int64_t number = 1;
	bool by_name;

	PRB_TRY(prb_repr_is_dict(r, fields, &by_name));
	PRB_TRY(by_name ? prb_repr_dict_get(r, fields, name, &field)
			: find_in_tuple(r, fields, name, &field));
	if (place->part)
		PRB_TRY(prb_repr_attribute(r, field, place->part, &field));
	PRB_TRY(prb_repr_attribute(r, field, "repr", &value));
	if (prb_repr_is(r, value, "bool"))
		PRB_TRY(prb_repr_int(r, value, &number));
	*ret = !number;
	return NULL;
}

static bool has(struct prb_repr *r, const struct prb_type *type, const char *name, uint64_t *ret)
{
	prb_auto_error struct prb_error *err = prb_repr_lookup(r, type, name, ret, NULL);

	return !err;
}

bool prb_repr_hides(struct prb_repr *r, struct prb_type *type, const char *name)
{
	uint64_t found;

	if (r->max.secrets || !(type->flags & PRB_PY_HEAP_TYPE) || type->described == PRB_NO_FIELDS)
		return false;
	if (type->described == PRB_FIELDS_UNKNOWN) {
		type->described = PRB_NO_FIELDS;
		for (size_t i = 0; i < PRB_ARRAY_SIZE(places); i++)
			if (has(r, type, places[i].name, &found))
				type->described = PRB_FIELDS;
		if (has(r, type, "get_secret_value", &found))
			type->described = PRB_FIELDS;
	}
	if (type->described == PRB_NO_FIELDS)
		return false;
	if (!strcmp(name, "_secret_value") && has(r, type, "get_secret_value", &found))
		return true;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(places); i++) {
		bool left_out = false;

		if (!has(r, type, places[i].name, &found))
			continue;
		/* A field that is not described, or not as these libraries do, is none. */
		prb_error_destroy(is_left_out(r, found, &places[i], name, &left_out));
		if (left_out)
			return true;
	}
	return false;
}

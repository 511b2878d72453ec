/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attributes that the class of an object leaves out of its repr(): passwords and the like. The
 * fields of dataclasses, of attrs and of pydantic's models say so, each in a place of its own;
 * pydantic's SecretStr and its like have a method that gives the value away, by which all of them
 * is hidden, whatever else they are derived from. No code runs.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

enum { MAX_FIELDS = 1000 };

/* Where classes describe their fields, by name in a dict or one after the other in a tuple, and
 * what of the description has `repr`; NULL: itself. */
static const struct place {
	const char *name, *part;
	bool may_mask;
} places[] = {
	{"__dataclass_fields__", NULL, false}, {"__attrs_attrs__", NULL, true},
	{"__pydantic_fields__", NULL, false}, /* pydantic 2.10 and later */
	{"model_fields", NULL, false},	      /* 2.0 to 2.9 */
	{"__fields__", "field_info", false},  /* 1 */
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

/* Whether the description says repr=False, or has, as attrs allows, a function that makes another
 * text of the value. */
static struct prb_error *says_so(struct prb_repr *r, uint64_t field, const struct place *place,
				 bool *ret)
{
	int64_t number = 1;
	uint64_t value;

	if (place->part)
		PRB_TRY(prb_repr_attribute(r, field, place->part, &field));
	PRB_TRY(prb_repr_attribute(r, field, "repr", &value));
	if (prb_repr_is(r, value, "bool"))
		PRB_TRY(prb_repr_int(r, value, &number));
	else if (place->may_mask)
		number = 0;
	*ret = !number;
	return NULL;
}

static struct prb_error *is_left_out(struct prb_repr *r, uint64_t fields, const struct place *place,
				     const char *name, bool *ret)
{
	uint64_t field;
	bool by_name;

	PRB_TRY(prb_repr_is_dict(r, fields, &by_name));
	PRB_TRY(by_name ? prb_repr_dict_get(r, fields, name, &field)
			: find_in_tuple(r, fields, name, &field));
	return says_so(r, field, place, ret);
}

static bool has(struct prb_repr *r, const struct prb_type *type, const char *name, uint64_t *ret)
{
	prb_auto_error struct prb_error *err = prb_repr_lookup(r, type, name, ret, NULL);

	return !err;
}

/* Classes of a library that say nothing of that kind, and have a repr() of their own. */
static const struct prb_known_class {
	const char *module, *name, *attributes[2];
	bool url; /* hidden only if it has a user's name or password */
} known[] = {
	{"starlette.datastructures", "Secret", {"_value"}, false},
	{"starlette.datastructures", "URL", {"_url", "_components"}, true},
	{"sqlalchemy.engine.url", "URL", {"password"}, false},
};

/* A class of C, whose objects have a value that is no attribute. Some are heap types, too, and keep
 * the module in tp_name; classes of Python do not. */
static bool has_content(const struct prb_type *type)
{
	if (type->flags & PRB_PY_HEAP_TYPE)
		return strchr(type->name, '.');
	return !prb_type_is(type, "object");
}

/* Its bases: a known class, or a C class. */
static struct prb_error *look_at_classes(struct prb_repr *r, struct prb_type *type)
{
	uint64_t mro[PRB_MRO_MAX], module;
	struct prb_type *one;
	size_t count;

	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = 0; i < count; i++) {
		PRB_TRY(prb_repr_type(r, mro[i], &one));
		if (has_content(one))
			type->hides |= PRB_HIDES_CONTENT;
		for (size_t j = 0; j < PRB_ARRAY_SIZE(known); j++) {
			bool same = false;

			if (strcmp(one->name, known[j].name) != 0)
				continue;
			PRB_TRY(prb_repr_dict_get(r, one->dict, "__module__", &module));
			PRB_TRY(prb_repr_text_is(r, module, known[j].module, &same));
			if (same)
				type->known = &known[j];
		}
	}
	return NULL;
}

static bool hides_any(struct prb_repr *r, struct prb_type *type)
{
	uint64_t found;

	if (r->max.secrets || !(type->flags & PRB_PY_HEAP_TYPE))
		return false;
	if (!type->hides) {
		type->hides = PRB_HIDES_SEEN;
		for (size_t i = 0; i < PRB_ARRAY_SIZE(places); i++)
			if (has(r, type, places[i].name, &found))
				type->hides |= PRB_HIDES_FIELDS;
		if (has(r, type, "get_secret_value", &found))
			type->hides |= PRB_HIDES_ALL;
		prb_auto_error struct prb_error *err = look_at_classes(r, type);
		if (err) /* then it may have some */
			type->hides |= PRB_HIDES_CONTENT;
	}
	return type->hides & (PRB_HIDES_FIELDS | PRB_HIDES_ALL) || type->known;
}

/* Whether the URL is "scheme://user:password@host/path"; also if it cannot be read. */
static struct prb_error *has_userinfo(struct prb_repr *r, uint64_t object, bool *ret)
{
	prb_auto_str struct prb_str text = {};
	const char *place;
	uint64_t value;

	*ret = true;
	PRB_TRY(prb_repr_attribute(r, object, "_url", &value));
	PRB_TRY(prb_repr_text(r, value, 4096, &text));
	place = strstr(prb_str_text(&text), "//");
	*ret = place && memchr(place, '@', 2 + strcspn(place + 2, "/?#"));
	return NULL;
}

/* A field that is not described, or not as these libraries do, is none. */
static bool is_hidden_field(struct prb_repr *r, const struct prb_type *type, const char *name)
{
	bool hidden = false;
	uint64_t found;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(places) && !hidden; i++)
		if (has(r, type, places[i].name, &found))
			prb_error_destroy(is_left_out(r, found, &places[i], name, &hidden));
	return hidden;
}

struct any_field {
	struct prb_repr *r;
	const struct place *place;
	bool hidden;
};

static bool visit_field(void *context, uint64_t key, uint64_t field)
{
	struct any_field *any = context;

	(void)key;
	prb_error_destroy(says_so(any->r, field, any->place, &any->hidden));
	return !any->hidden;
}

bool prb_repr_hides_defaults(struct prb_repr *r, uint64_t class)
{
	struct any_field any = {.r = r};
	uint64_t items[MAX_FIELDS], count = 0, found;
	struct prb_type *type;
	bool by_name = false;

	prb_auto_error struct prb_error *err = prb_repr_type(r, class, &type);
	if (err || !hides_any(r, type))
		return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(places) && !any.hidden; i++) {
		if (!has(r, type, places[i].name, &found))
			continue;
		any.place = &places[i];
		prb_error_destroy(prb_repr_is_dict(r, found, &by_name));
		if (by_name)
			prb_error_destroy(prb_repr_dict_each(r, found, visit_field, &any));
		else
			prb_error_destroy(prb_repr_tuple(r, found, items, MAX_FIELDS, &count));
		for (uint64_t j = 0; j < PRB_MIN(count, (uint64_t)MAX_FIELDS) && !by_name; j++)
			if (!visit_field(&any, 0, items[j]))
				break;
	}
	return any.hidden;
}

/* Whether the text of a class is "NAME(FIELD: TYPE = DEFAULT)", as dataclasses make it. */
static bool is_signature(struct prb_repr *r, const struct prb_type *type)
{
	enum { CHARACTERS = 200 };
	const char *dot = strrchr(type->name, '.'), *name = dot ? dot + 1 : type->name;
	size_t length = strlen(name);
	prb_auto_str struct prb_str text = {};
	uint64_t doc;

	if (!has(r, type, "__doc__", &doc))
		return false;
	prb_error_destroy(prb_repr_text(r, doc, CHARACTERS, &text));
	return !strncmp(prb_str_text(&text), name, PRB_MIN(length, (size_t)CHARACTERS / 2)) &&
	       strchr(prb_str_text(&text), '(');
}

/* A class keeps the defaults of its fields, and texts that are made of them. */
static bool hides_default(struct prb_repr *r, uint64_t class, const char *name)
{
	static const char *const made[] = {"__signature__", "__pydantic_core_schema__"};
	struct prb_type *type;

	prb_auto_error struct prb_error *err = prb_repr_type(r, class, &type);
	if (err || !hides_any(r, type))
		return false;
	if (!strcmp(name, "__doc__"))
		return is_signature(r, type) && prb_repr_hides_defaults(r, class);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(made); i++)
		if (!strcmp(name, made[i]))
			return prb_repr_hides_defaults(r, class);
	return is_hidden_field(r, type, name);
}

/* So does the description of a field. */
static bool is_default(struct prb_repr *r, const struct prb_type *type, uint64_t object,
		       const char *name)
{
	static const struct {
		const char *type;
		struct place place;
	} fields[] = {{"Field", {"", NULL, false}},
		      {"Attribute", {"", NULL, true}},
		      {"FieldInfo", {"", NULL, false}},
		      {"ModelField", {"", "field_info", false}}};
	const char *dot = strrchr(type->name, '.');
	/* pydantic notes what was given. */
	bool kept = !strcmp(name, "default") || !strcmp(name, "_attributes_set"), hidden = false;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(fields) && kept; i++)
		if (!strcmp(dot ? dot + 1 : type->name, fields[i].type))
			prb_error_destroy(says_so(r, object, &fields[i].place, &hidden));
	return hidden;
}

bool prb_repr_hides(struct prb_repr *r, struct prb_type *type, uint64_t object, const char *name)
{
	bool hidden = false;

	if (r->max.secrets)
		return false;
	if (type->flags & PRB_PY_TYPE ? hides_default(r, object, name)
				      : is_default(r, type, object, name))
		return true;
	if (!hides_any(r, type))
		return false;
	if (type->hides & PRB_HIDES_ALL)
		return true;
	for (size_t i = 0; type->known && i < PRB_ARRAY_SIZE(type->known->attributes); i++)
		if (type->known->attributes[i] && !strcmp(type->known->attributes[i], name))
			hidden = true;
	if (hidden && type->known->url)
		prb_error_destroy(has_userinfo(r, object, &hidden));
	return hidden || is_hidden_field(r, type, name);
}

bool prb_repr_hides_all(struct prb_repr *r, struct prb_type *type)
{
	return hides_any(r, type) && type->hides & PRB_HIDES_ALL;
}

bool prb_repr_hides_items(struct prb_repr *r, struct prb_type *type)
{
	return hides_any(r, type) && (type->hides & PRB_HIDES_ALL || type->known);
}

struct prb_error *prb_repr_put_hidden(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	if (!(type->hides & PRB_HIDES_CONTENT))
		return prb_repr_handle_default(r, object, type);
	prb_str_puts(r->out, PRB_REPR_HIDDEN);
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attributes of instances: inline values, dicts, slots. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr_private.h"

/* The values that an instance has outside of any dict: their address, or 0 if it has none. */
static struct prb_error *find_values(struct prb_repr *r, uint64_t object,
				     const struct prb_type *type, uint64_t *values)
{
	uint64_t pointer, header;

	*values = 0;
	switch (r->traits->managed) {
	case PRB_MANAGED_NONE:
		return NULL;
	case PRB_MANAGED_PAIR:
		return type->flags & PRB_PY_MANAGED_DICT ? prb_repr_word(r, object - 32, values)
							 : NULL;
	case PRB_MANAGED_TAGGED:
		if (!(type->flags & PRB_PY_MANAGED_DICT))
			return NULL;
		PRB_TRY(prb_repr_word(r, object - 24, &pointer));
		if (pointer & 1)
			*values = pointer + 1;
		return NULL;
	case PRB_MANAGED_INLINE:
		if (!(type->flags & PRB_PY_INLINE_VALUES))
			return NULL;
		PRB_TRY(prb_repr_word(r, object + (uint64_t)type->basicsize, &header));
		if (header >> 24 & 0xff)
			*values = object + (uint64_t)type->basicsize;
		return NULL;
	}
	return NULL;
}

/* Where the pointer to the instance's dict lies; 0 if it has none. */
static struct prb_error *find_dict_pointer(struct prb_repr *r, uint64_t object,
					   const struct prb_type *type, uint64_t *place)
{
	*place = 0;
	if (r->traits->managed != PRB_MANAGED_NONE && type->flags & PRB_PY_MANAGED_DICT) {
		*place = object - (r->layout->free_threaded ? 8 : 24);
		return NULL;
	}
	if (type->dictoffset > 0) {
		if (type->dictoffset <= type->basicsize)
			*place = object + (uint64_t)type->dictoffset;
		return NULL;
	}
	if (type->dictoffset < 0 && type->dictoffset > -4096) {
		uint64_t count, bytes;

		/* Counted from the end of the object. */
		PRB_TRY(prb_repr_item_count(r, object, type, &count));
		if (!prb_mul(count, (uint64_t)type->itemsize, &bytes))
			return prb_repr_bad(object, "impossible size");
		bytes = ((uint64_t)type->basicsize + bytes + 7) & ~UINT64_C(7);
		*place = object + bytes + (uint64_t)type->dictoffset;
	}
	return NULL;
}

static struct prb_error *get_from_values(struct prb_repr *r, uint64_t object,
					 const struct prb_type *type, const char *name,
					 uint64_t *ret)
{
	uint64_t values, keys;

	PRB_TRY(find_values(r, object, type, &values));
	if (!values || r->layout->heap_type_cached_keys < 0)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it has no values of its own");
	PRB_TRY(prb_repr_word(r, type->address + (uint64_t)r->layout->heap_type_cached_keys,
			      &keys));
	return prb_repr_table_get(r, keys, values, UINT64_MAX, name, ret);
}

static struct prb_error *get_from_dict(struct prb_repr *r, uint64_t object,
				       const struct prb_type *type, const char *name, uint64_t *ret)
{
	uint64_t place, dict = 0;

	PRB_TRY(find_dict_pointer(r, object, type, &place));
	if (place)
		PRB_TRY(prb_repr_word(r, place, &dict));
	/* 3.12 keeps a tagged pointer to the values in the same place. */
	if (!dict || dict & 1)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it has no dict");
	return prb_repr_dict_get(r, dict, name, ret);
}

/* A slot: the class has a member descriptor that says where the value lies in the object. */
static struct prb_error *get_from_slots(struct prb_repr *r, uint64_t object, const char *name,
					uint64_t *ret)
{
	prb_auto_str struct prb_str unused = {};
	struct prb_member member;
	uint64_t descriptor;
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	PRB_TRY(prb_repr_lookup(r, type, name, &descriptor, NULL));
	PRB_TRY(prb_repr_member_of(r, descriptor, &member));
	PRB_TRY(prb_repr_member_value(r, object, &member, ret, &unused));
	if (!*ret)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "'%s' is no object", name);
	return NULL;
}

bool prb_repr_has_dict(const struct prb_repr *r, const struct prb_type *type)
{
	return type->dictoffset ||
	       (r->traits->managed != PRB_MANAGED_NONE && type->flags & PRB_PY_MANAGED_DICT);
}

struct prb_error *prb_repr_instance_get(struct prb_repr *r, uint64_t object, const char *name,
					uint64_t *ret)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_nameless_type_of(r, object, &type));

	struct prb_error *err = get_from_values(r, object, type, name, ret);

	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND)
		       ? get_from_dict(r, object, type, name, ret)
		       : err;
}

struct prb_error *prb_repr_attribute(struct prb_repr *r, uint64_t object, const char *name,
				     uint64_t *ret)
{
	struct prb_error *err = prb_repr_instance_get(r, object, name, ret);

	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? get_from_slots(r, object, name, ret)
							  : err;
}

struct prb_error *prb_repr_instance_each(struct prb_repr *r, uint64_t object, prb_dict_visit *visit,
					 void *context)
{
	uint64_t values, place, keys, dict = 0;
	struct prb_type *type;

	PRB_TRY(prb_repr_nameless_type_of(r, object, &type));
	PRB_TRY(find_values(r, object, type, &values));
	if (values && r->layout->heap_type_cached_keys >= 0) {
		PRB_TRY(prb_repr_word(r, type->address + (uint64_t)r->layout->heap_type_cached_keys,
				      &keys));
		return prb_repr_table_each(r, keys, values, UINT64_MAX, visit, context);
	}
	PRB_TRY(find_dict_pointer(r, object, type, &place));
	if (place)
		PRB_TRY(prb_repr_word(r, place, &dict));
	return dict && !(dict & 1) ? prb_repr_dict_each(r, dict, visit, context) : NULL;
}

struct prb_error *prb_object_attribute(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				       const char *name, uint64_t *ret)
{
	prb_auto_repr struct prb_repr r;

	prb_repr_init(&r, py, mem, NULL, NULL);
	return prb_repr_attribute(&r, object, name, ret);
}

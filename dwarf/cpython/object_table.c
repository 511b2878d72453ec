/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which handler prints the repr that a builtin or extension type brings. */
#include <string.h>

#include "dwarf/base/checked.h"
#include "dwarf/cpython/object_handlers.h"

static struct prb_error *handle_none(struct prb_repr *r, uint64_t object __attribute__((unused)),
				     struct prb_type *type __attribute__((unused)))
{
	prb_str_puts(r->out, "None");
	return NULL;
}

static struct prb_error *handle_ellipsis(struct prb_repr *r,
					 uint64_t object __attribute__((unused)),
					 struct prb_type *type __attribute__((unused)))
{
	prb_str_puts(r->out, "Ellipsis");
	return NULL;
}

static struct prb_error *handle_not_implemented(struct prb_repr *r,
						uint64_t object __attribute__((unused)),
						struct prb_type *type __attribute__((unused)))
{
	prb_str_puts(r->out, "NotImplemented");
	return NULL;
}

/* By tp_name of the type whose tp_repr it is. */
static const struct {
	const char *name;
	prb_repr_handler *handler;
} handlers[] = {
	{"NoneType", handle_none},
	{"ellipsis", handle_ellipsis},
	{"NotImplementedType", handle_not_implemented},
	{"bool", prb_repr_handle_bool},
	{"bytearray", prb_repr_handle_bytearray},
	{"bytes", prb_repr_handle_bytes},
	{"collections.OrderedDict", prb_repr_handle_ordered_dict},
	{"collections.defaultdict", prb_repr_handle_defaultdict},
	{"collections.deque", prb_repr_handle_deque},
	{"complex", prb_repr_handle_complex},
	{"dict", prb_repr_handle_dict},
	{"dict_items", prb_repr_handle_dict_items},
	{"dict_keys", prb_repr_handle_dict_keys},
	{"dict_values", prb_repr_handle_dict_values},
	{"float", prb_repr_handle_float},
	{"frozenset", prb_repr_handle_set},
	{"int", prb_repr_handle_int},
	{"list", prb_repr_handle_list},
	{"mappingproxy", prb_repr_handle_mappingproxy},
	{"object", prb_repr_handle_default},
	{"range", prb_repr_handle_range},
	{"set", prb_repr_handle_set},
	{"slice", prb_repr_handle_slice},
	{"str", prb_repr_handle_str},
	{"tuple", prb_repr_handle_tuple},
	{"types.SimpleNamespace", prb_repr_handle_namespace},
};

prb_repr_handler *prb_repr_c_handler(const char *name)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(handlers); i++)
		if (strcmp(handlers[i].name, name) == 0)
			return handlers[i].handler;
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What differs between CPython versions in objects; a row holds until the next one. */
#include "base/checked.h"
#include "python/repr/object_private.h"

static const struct prb_object_traits traits[] = {
	{
		.since = 0x0304,
		.keys = PRB_KEYS_OPEN,
		.exception_comma = true,
		.module_repr = true,
		.deque_literal = true,
		.namespace_sorted = true,
		.method_class = true,
		.rlock_short = true,
		.loader_first = true,
		.deque_block = 62,
	},
	{
		.since = 0x0305,
		.keys = PRB_KEYS_OPEN,
		.exception_comma = true,
		.module_repr = true,
		.deque_literal = true,
		.namespace_sorted = true,
		.loader_first = true,
		.deque_block = 64,
	},
	{
		.since = 0x0306,
		.keys = PRB_KEYS_COMPACT,
		.hash_long = true,
		.exception_comma = true,
		.module_repr = true,
		.fold = true,
		.deque_literal = true,
		.namespace_sorted = true,
		.loader_first = true,
		.deque_block = 64,
	},
	{
		.since = 0x0307,
		.keys = PRB_KEYS_COMPACT,
		.hash_long = true,
		.module_repr = true,
		.fold = true,
		.timedelta_names = true,
		.namespace_sorted = true,
		.loader_first = true,
		.deque_block = 64,
	},
	{
		.since = 0x0309,
		.keys = PRB_KEYS_COMPACT,
		.hash_long = true,
		.module_repr = true,
		.fold = true,
		.timedelta_names = true,
		.loader_first = true,
		.deque_block = 64,
	},
	{
		.since = 0x030a,
		.keys = PRB_KEYS_COMPACT,
		.hash_long = true,
		.module_repr = true,
		.fold = true,
		.timedelta_names = true,
		.deque_block = 64,
	},
	{
		.since = 0x030b,
		.keys = PRB_KEYS_KINDS,
		.values = PRB_VALUES_PREFIXED,
		.managed = PRB_MANAGED_PAIR,
		.enum_value_first = true,
		.module_repr = true,
		.fold = true,
		.timedelta_names = true,
		.deque_block = 64,
	},
	{
		.since = 0x030c,
		.keys = PRB_KEYS_KINDS,
		.values = PRB_VALUES_PREFIXED,
		.managed = PRB_MANAGED_TAGGED,
		.int_tag = true,
		.odict_as_dict = true,
		.enum_value_first = true,
		.fold = true,
		.timedelta_names = true,
		.deque_block = 64,
	},
	{
		.since = 0x030d,
		.keys = PRB_KEYS_KINDS,
		.values = PRB_VALUES_HEADED,
		.managed = PRB_MANAGED_INLINE,
		.int_tag = true,
		.odict_as_dict = true,
		.enum_value_first = true,
		.fold = true,
		.timedelta_names = true,
		.deque_block = 64,
	},
	{
		.since = 0x030e,
		.keys = PRB_KEYS_KINDS,
		.values = PRB_VALUES_HEADED,
		.managed = PRB_MANAGED_INLINE,
		.int_tag = true,
		.odict_as_dict = true,
		.enum_value_first = true,
		.fold = true,
		.timedelta_names = true,
		.rlock_mutex = true,
		.deque_block = 64,
	},
	{
		.since = 0x030f,
		.keys = PRB_KEYS_KINDS,
		.values = PRB_VALUES_HEADED,
		.managed = PRB_MANAGED_INLINE,
		.int_tag = true,
		.odict_as_dict = true,
		.enum_value_first = true,
		.fold = true,
		.timedelta_names = true,
		.bytearray_as_bytes = true,
		.rlock_mutex = true,
		.deque_block = 64,
	},
};

const struct prb_object_traits *prb_object_traits_find(uint16_t version)
{
	const struct prb_object_traits *found = &traits[0];

	for (size_t i = 0; i < PRB_ARRAY_SIZE(traits); i++)
		if (traits[i].since <= version)
			found = &traits[i];
	return found;
}

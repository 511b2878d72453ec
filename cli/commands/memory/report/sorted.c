/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "cli/commands/memory/report/memory.h"

static int by_number(uint64_t one, uint64_t other)
{
	return one > other ? -1 : one < other;
}

static int compare_types(const void *a, const void *b)
{
	const struct prb_census_type *one = a, *other = b;
	int order = by_number(one->bytes, other->bytes);

	return order ? order : strcmp(one->name, other->name);
}

struct prb_error *prb_memory_types(struct prb_census *census, struct prb_census_type **ret,
				   size_t *count)
{
	PRB_VEC(struct prb_census_type) list = {};
	struct prb_census_type type;

	for (size_t i = 0; prb_census_type(census, i, &type); i++) {
		struct prb_census_type *added = type.count ? prb_vec_push(&list) : &type;

		if (!added) {
			prb_vec_free(&list);
			return prb_error_nomem();
		}
		*added = type;
	}
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), compare_types);
	*ret = list.items;
	*count = list.count;
	return NULL;
}

static uint64_t bytes_of(const struct prb_census_tensor *t)
{
	return t->storage ? t->storage_bytes : t->bytes;
}

static int compare_tensors(const void *a, const void *b)
{
	const struct prb_census_tensor *one = a, *other = b;
	int order = by_number(bytes_of(one), bytes_of(other));

	return order ? order : one->object < other->object ? -1 : one->object > other->object;
}

struct prb_error *prb_memory_tensors(struct prb_census *census, struct prb_census_tensor **ret,
				     size_t *count)
{
	size_t all;
	const struct prb_census_tensor *tensors = prb_census_tensors(census, &all);
	struct prb_census_tensor *list = malloc((all + 1) * sizeof(*list));

	if (!list)
		return prb_error_nomem();
	*count = 0;
	for (size_t i = 0; i < all; i++)
		if (tensors[i].first)
			list[(*count)++] = tensors[i];
	if (*count)
		qsort(list, *count, sizeof(*list), compare_tensors);
	*ret = list;
	return NULL;
}

static int compare_groups(const void *a, const void *b)
{
	const struct prb_memory_group *one = a, *other = b;
	int order = by_number(one->bytes, other->bytes);

	return order ? order : strcmp(one->dtype, other->dtype);
}

static bool same(const char *one, const char *other)
{
	return one == other || (one && other && !strcmp(one, other));
}

struct prb_error *prb_memory_groups(struct prb_census *census, struct prb_memory_group **ret,
				    size_t *count)
{
	PRB_VEC(struct prb_memory_group) list = {};
	size_t all;
	const struct prb_census_tensor *t = prb_census_tensors(census, &all);

	for (const struct prb_census_tensor *end = t + all; t < end; t++) {
		struct prb_memory_group *group = list.items, *last = list.items + list.count;

		while (group < last &&
		       (!same(group->device, t->device) || group->index != t->device_index ||
			!same(group->dtype, t->dtype)))
			group++;
		if (group == last) {
			group = prb_vec_push(&list);
			if (!group) {
				prb_vec_free(&list);
				return prb_error_nomem();
			}
			*group = (struct prb_memory_group){
				.device = t->device, .dtype = t->dtype, .index = t->device_index};
		}
		group->tensors += !t->gradient;
		group->gradients += t->gradient;
		group->bytes += t->first ? bytes_of(t) : 0;
	}
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), compare_groups);
	*ret = list.items;
	*count = list.count;
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/jobs/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "values/interpreters.h"
#include "cluster/jobs/rank_set.h"
#include "python/repr/core/repr.h"

enum {
	MAX_GROUPS = 4096,
	MAX_MEMBERS =
		1 << 21, /* of all groups together: the process's own numbers are not trusted */
	MAX_RANK = 1 << 20,
	MAX_NAME = 100,
	POINTER_OFFSET = 16, /* of the C++ object's address, behind PyObject_HEAD */
	FIRST_WORD = 4,	     /* behind the table of functions and the reference counts */
};

struct reading {
	const struct prb_inside *inside;
	struct prb_groups *groups;
	struct prb_rank_set members;
	size_t total;
	struct prb_error *err;
};

void prb_groups_deinit(struct prb_groups *groups)
{
	struct prb_group *group;

	prb_vec_each (group, &groups->list) {
		free(group->name);
		free(group->members);
	}
	prb_vec_free(&groups->list);
}

static bool note_member(void *context, uint64_t key, uint64_t value __attribute__((unused)))
{
	struct reading *r = context;
	int64_t rank;
	long *place;

	r->err = prb_object_int(r->inside->py, r->inside->mem, key, &rank);
	if (!r->err && (rank < 0 || rank > MAX_RANK || ++r->total > MAX_MEMBERS))
		r->err = prb_error_create(PRB_ERROR_BAD_DATA, "no group of ranks");
	if (r->err)
		return false;
	place = prb_vec_push(&r->members.list);
	if (place)
		*place = (long)rank;
	else
		r->err = prb_error_nomem();
	return place;
}

static int by_number(const void *a, const void *b)
{
	const long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct prb_error *read_members(struct reading *r, uint64_t ranks, char **ret)
{
	prb_auto_str struct prb_str text = {};

	r->members.list.count = 0;
	PRB_TRY(prb_object_dict_each(r->inside->py, r->inside->mem, ranks, note_member, r));
	PRB_TRY(prb_steal(&r->err));
	if (!r->members.list.count)
		return NULL;
	qsort(r->members.list.items, r->members.list.count, sizeof(long), by_number);
	prb_rank_set_text(&text, &r->members);
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

/** A group, and {its global rank: its rank in the group}. */
static bool note_group(void *context, uint64_t object, uint64_t ranks)
{
	struct reading *r = context;
	struct prb_group *group;
	struct prb_error *err;

	if (r->groups->list.count == MAX_GROUPS)
		return false;
	group = prb_vec_push(&r->groups->list);
	if (!group) {
		r->err = prb_error_nomem();
		return false;
	}
	*group = (struct prb_group){.object = object};
	err = read_members(r, ranks, &group->members);
	group->size = r->members.list.count;
	if (err && err->code != PRB_ERROR_NOMEM)
		prb_error_destroy(err);
	else
		r->err = err;
	return !r->err;
}

static bool note_name(void *context, uint64_t object, uint64_t name)
{
	struct reading *r = context;
	struct prb_group *group;

	prb_vec_each (group, &r->groups->list) {
		prb_auto_str struct prb_str text = {};

		if (group->object != object || group->name)
			continue;
		prb_auto_error struct prb_error *err =
			prb_object_str(r->inside->py, r->inside->mem, name, MAX_NAME, &text);
		if (!err)
			group->name = prb_str_take(&text);
	}
	return true;
}

/** Walks a dict of torch's module, if there is one of that name. */
static struct prb_error *walk(struct reading *r, const char *name,
			      bool (*visit)(void *context, uint64_t key, uint64_t value))
{
	prb_auto_free char *expression =
		prb_format("sys.modules['torch.distributed.distributed_c10d'].%s", name);
	uint64_t dict;

	if (!expression)
		return prb_error_nomem();
	PRB_TRY(prb_inside_find(r->inside, expression, &dict));
	if (dict)
		PRB_TRY(prb_object_dict_each(r->inside->py, r->inside->mem, dict, visit, r));
	return prb_steal(&r->err);
}

/**
 * The rank of the process in its first group, of @p size ranks: two integers of the C++ object,
 * which pybind11's object points to. They are searched for, as their place differs between
 * versions: behind the reference counts, at addresses of pointers.
 */
static long find_own_rank(struct prb_mem *mem, uint64_t object, size_t size)
{
	uint64_t place;
	int32_t words[32];

	prb_auto_error struct prb_error *err =
		prb_mem_read(mem, object + POINTER_OFFSET, &place, sizeof(place));
	if (!err)
		err = prb_mem_read(mem, place, words, sizeof(words));
	for (size_t i = FIRST_WORD; !err && i + 1 < PRB_ARRAY_SIZE(words); i += 2)
		if (words[i] >= 0 && (size_t)words[i] < size && (size_t)words[i + 1] == size)
			return words[i];
	return -1;
}

static struct prb_error *read_inside(void *context, const struct prb_inside *inside)
{
	struct reading *r = context;
	struct prb_groups *groups = r->groups;

	r->inside = inside;
	PRB_TRY(walk(r, "_pg_group_ranks", note_group));
	if (!groups->list.count)
		return NULL;
	/* The first group contains all ranks. */
	groups->world_size = (long)groups->list.items[0].size;
	groups->rank = find_own_rank(inside->mem, groups->list.items[0].object,
				     groups->list.items[0].size);
	return walk(r, "_pg_names", note_name);
}

struct prb_error *prb_groups_read(struct prb_target *target, const struct prb_pythons *pythons,
				  struct prb_groups *ret)
{
	struct reading reading = {.groups = ret};
	struct prb_error *err;

	ret->rank = ret->world_size = -1;
	err = prb_inside_each(target, pythons, read_inside, &reading);
	prb_vec_free(&reading.members.list);
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cluster/rank_set.h"
#include "python/python.h"
#include "python/repr/object.h"
#include "target/mem/view.h"
#include "values/expression.h"

enum {
	MAX_GROUPS = 4096,
	MAX_MEMBERS =
		1 << 17, /* of all groups together: the process's own numbers are not trusted */
	MAX_RANK = 1 << 20,
	MAX_NAME = 100,
};

struct reading {
	struct prb_python *py;
	struct prb_mem *mem;
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

	r->err = prb_object_int(r->py, r->mem, key, &rank);
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
	PRB_TRY(prb_object_dict_each(r->py, r->mem, ranks, note_member, r));
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
			prb_object_str(r->py, r->mem, name, MAX_NAME, &text);
		if (!err)
			group->name = prb_str_take(&text);
	}
	return true;
}

/** Walks a dict of torch's module, if there is one of that name. */
static struct prb_error *walk(struct reading *r, uint64_t interp, const char *name,
			      bool (*visit)(void *context, uint64_t key, uint64_t value))
{
	const struct prb_py_scope scope = {.interp = interp};
	prb_auto_free char *expression =
		prb_format("sys.modules['torch.distributed.distributed_c10d'].%s", name);
	struct prb_py_value value;

	if (!expression)
		return prb_error_nomem();
	PRB_TRY(prb_python_find(r->py, r->mem, &scope, expression, NULL, &value));
	prb_str_deinit(&value.text);
	if (value.object)
		PRB_TRY(prb_object_dict_each(r->py, r->mem, value.object, visit, r));
	return prb_steal(&r->err);
}

static struct prb_error *read_runtime(struct reading *r)
{
	struct prb_py_threads threads;
	struct prb_error *err = NULL;

	PRB_TRY(prb_python_threads(r->py, r->mem, &threads));
	for (size_t i = 0; i < threads.interps.count && !err; i++) {
		uint64_t interp = threads.interps.items[i].address;

		if (!threads.interps.items[i].main)
			continue;
		err = walk(r, interp, "_pg_group_ranks", note_group);
		if (!err && r->groups->list.count)
			err = walk(r, interp, "_pg_names", note_name);
	}
	prb_py_threads_deinit(&threads);
	return err;
}

struct prb_error *prb_groups_read(struct prb_target *target, struct prb_groups *ret)
{
	struct prb_modules *modules = NULL;
	struct prb_pythons pythons = {};
	struct prb_view *view;
	struct prb_python **py;
	struct prb_error *err;

	PRB_TRY(prb_view_create(target->mem, &view));
	err = prb_pythons_open(target, view, false, &modules, &pythons);
	prb_vec_each (py, &pythons.list) {
		struct reading reading = {.py = *py, .mem = prb_view_mem(view), .groups = ret};

		if (!err)
			err = read_runtime(&reading);
		prb_vec_free(&reading.members.list);
	}
	prb_pythons_deinit(&pythons);
	prb_view_destroy(view);
	prb_modules_destroy(modules);
	/* Without torch there is no such module, and what changes while it is read has no groups.
	 */
	if (err && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		err = NULL;
	}
	return err;
}

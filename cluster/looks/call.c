/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cluster/jobs/groups.h"
#include "cluster/looks/training_thread.h"
#include "cluster/looks/look.h"
#include "dump/dump.h"

/** Of a tensor only the beginning is needed, of other variables nothing. */
static const struct prb_repr_options short_values = {
	.max_depth = 1, .max_items = 4, .max_text = 40, .max_total = 300};

void prb_call_destroy(struct prb_call *call)
{
	if (!call)
		return;
	free(call->group);
	free(call->members);
	free(call->data);
	free(call);
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; name && i < count; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/** "tensor(shape=(2, 3), dtype=float32, device='cpu')" becomes "(2, 3) float32". */
static struct prb_error *read_data(const char *value, char **ret)
{
	static const char shape[] = "(shape=", type[] = ", dtype=";
	const char *from = value ? strstr(value, shape) : NULL;
	const char *to = from ? strstr(from, type) : NULL;
	size_t length;

	if (!to || *ret)
		return NULL;
	from += strlen(shape);
	length = strcspn(to + strlen(type), ",)");
	*ret = prb_format("%.*s %.*s", (int)(to - from), from, (int)length, to + strlen(type));
	return *ret ? NULL : prb_error_nomem();
}

/** Reads the variables of the function of torch.distributed. *group: the object, or 0. */
static struct prb_error *read_variables(const struct prb_dump_frame *frame, struct prb_call *call,
					uint64_t *group, bool *all)
{
	static const char *const tensors[] = {"tensor", "input_tensor", "input", "output_tensor"},
				 *const peers[] = {"src", "dst"};
	const struct prb_dump_local *local;

	prb_vec_each (local, &frame->locals) {
		if (is_one_of(local->name, tensors, PRB_ARRAY_SIZE(tensors)))
			PRB_TRY(read_data(local->value, &call->data));
		else if (is_one_of(local->name, peers, PRB_ARRAY_SIZE(peers)) &&
			 local->number == PRB_NUMBER_INTEGER && local->integer >= 0 &&
			 local->integer <= INT32_MAX)
			call->peer = (long)local->integer;
		else if (!strcmp(local->name, "tag") && local->number == PRB_NUMBER_INTEGER &&
			 local->integer >= 0 && local->integer <= INT32_MAX)
			call->tag = (long)local->integer;
		else if (!strcmp(local->name, "group") && local->type && local->address) {
			*all = !strcmp(local->type, "NoneType");
			*group = *all ? 0 : local->address;
		}
	}
	return NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool prb_call_same_group(const struct prb_call *a, const struct prb_call *b)
{
	if (!a || !b)
		return !(a ? a : b) || !(a ? a : b)->members;
	return same_text(a->members, b->members) &&
	       (!a->group || !b->group || !strcmp(a->group, b->group));
}

bool prb_call_same_place(const struct prb_seen *a, const struct prb_seen *b)
{
	if (!a->caller || !b->caller)
		return a->caller == b->caller;
	const char *x = a->caller->file, *y = b->caller->file;

	return a->caller->line == b->caller->line && (x == y || (x && y && !strcmp(x, y)));
}

/** The frame of the function of torch.distributed, with its variables, if it is still that call. */
static struct prb_error *read_frame(struct prb_watch *watch, const struct prb_seen *seen,
				    struct prb_call *call, uint64_t *group, bool *all)
{
	struct prb_dump_options options = {
		.locals = true, .no_waits = true, .no_command = true, .values = &short_values};
	__attribute__((cleanup(prb_seen_deinit))) struct prb_seen again = {.trains = seen->trains};

	prb_training_thread_only(seen, &options);
	PRB_TRY(prb_dump_create_with(watch->target, &options, &watch->found, &again.dump));
	if (!again.dump->threads.count)
		return NULL;
	prb_seen_find(&again);
	if (!again.called || strcmp(again.collective, seen->collective) != 0 ||
	    !prb_call_same_place(&again, seen))
		return prb_error_create(PRB_ERROR_BAD_DATA, "the rank has gone on");
	return read_variables(again.called, call, group, all);
}

/** True for the group of all ranks, as the versions of torch call it. */
static bool is_default(const char *name)
{
	return name && (!strcmp(name, "0") || !strcmp(name, "default_pg"));
}

/** Finds the group of the call: the given object, or the only group. */
static struct prb_error *find_group(const struct prb_groups *groups, uint64_t object, bool all,
				    struct prb_call *call)
{
	const struct prb_group *group;

	/* Without an argument it is the group of all ranks. */
	call->known = all || (!object && groups->list.count == 1);
	if (call->known)
		return NULL;
	prb_vec_each (group, &groups->list) {
		if (group->object != object || !group->members)
			continue;
		call->known = true;
		/* Some functions get it, and others nothing. */
		if (is_default(group->name))
			return NULL;
		PRB_TRY(prb_str_copy(group->name, &call->group));
		return prb_str_copy(group->members, &call->members);
	}
	return NULL;
}

static struct prb_error *read_call(struct prb_watch *watch, const struct prb_seen *seen,
				   struct prb_call *call)
{
	struct prb_groups groups = {};
	uint64_t group = 0;
	bool all = false;

	if (seen->called)
		PRB_TRY(read_frame(watch, seen, call, &group, &all));
	struct prb_error *err =
		all ? NULL : prb_groups_read(watch->target, &watch->found.pythons, &groups);
	if (!err)
		err = find_group(&groups, group, all, call);
	prb_groups_deinit(&groups);
	return err;
}

struct prb_error *prb_call_read(struct prb_watch *watch, struct prb_seen *seen)
{
	struct prb_error *err;

	if (!seen->collective)
		return NULL;
	seen->call = calloc(1, sizeof(*seen->call));
	if (!seen->call)
		return prb_error_nomem();
	seen->call->peer = seen->call->tag = -1;
	err = read_call(watch, seen, seen->call);
	/* The stack was read: what is not known of the call is no reason to lose it. */
	if (err && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		err = NULL;
	}
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls of an operator in the same module and part are one group. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "cli/commands/perf/torch/ops/ops.h"

/** Events sorted so that those of one group follow one another. */
struct sorted {
	PRB_VEC(const struct prb_kineto_event *) list;
};

static int compare_texts(const char *one, const char *other)
{
	if (one == other)
		return 0;
	return !one ? -1 : !other ? 1 : strcmp(one, other);
}

static const char *path_of(const struct prb_kineto *trace, const struct prb_kineto_event *e)
{
	const struct prb_kineto_module *module = prb_kineto_module_of(trace, e);

	return module ? module->path : NULL;
}

static int compare(const void *a, const void *b, void *trace)
{
	const struct prb_kineto_event *one = *(const struct prb_kineto_event *const *)a,
				      *other = *(const struct prb_kineto_event *const *)b;
	int order = compare_texts(one->name, other->name);

	if (!order)
		order = compare_texts(path_of(trace, one), path_of(trace, other));
	if (!order)
		order = (one->part > other->part) - (one->part < other->part);
	/* Names of files and lines come from the first one. */
	return order ? order : (one > other) - (one < other);
}

static int by_self(const void *a, const void *b)
{
	const struct prb_ops_group *one = a, *other = b;

	if (one->self != other->self)
		return one->self > other->self ? -1 : 1;
	return strcmp(one->name, other->name);
}

static bool is_same(const struct prb_kineto *trace, const struct prb_kineto_event *one,
		    const struct prb_kineto_event *other)
{
	return one->name == other->name && one->part == other->part &&
	       path_of(trace, one) == path_of(trace, other);
}

/** Some operators call the one of their name that is of another backend: that is one call. */
static bool is_again(const struct prb_kineto *trace, const struct prb_kineto_event *e)
{
	return e->kind == PRB_KINETO_OP && e->parent != PRB_KINETO_NONE &&
	       trace->events.items[e->parent].name == e->name;
}

static struct prb_error *group(const struct prb_kineto *trace, const struct sorted *sorted,
			       struct prb_ops_groups *ret)
{
	const struct prb_kineto_event *before = NULL;
	struct prb_ops_group *group = NULL;

	for (size_t i = 0; i < sorted->list.count; i++) {
		const struct prb_kineto_event *e = sorted->list.items[i];

		if (!before || !is_same(trace, before, e)) {
			group = prb_vec_push(&ret->list);
			if (!group)
				return prb_error_nomem();
			*group = (struct prb_ops_group){.name = e->name,
							.module = prb_kineto_module_of(trace, e),
							.part = e->part,
							.kind = e->kind,
							.shapes = e->shapes};
		}
		group->self += e->self;
		if (!is_again(trace, e)) {
			group->calls++;
			group->total += e->duration;
		}
		group->shapes = group->shapes == e->shapes ? e->shapes : NULL;
		if (__builtin_add_overflow(group->flops, e->flops, &group->flops))
			group->flops = 0;
		before = e;
	}
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_self);
	return NULL;
}

/** Groups the events of one kind that are in a step. */
static struct prb_error *sum(struct prb_ops *ops, bool on_gpu, struct prb_ops_groups *ret)
{
	struct sorted sorted = {};
	const struct prb_kineto_event *e;
	struct prb_error *err = NULL;

	prb_vec_each (e, &ops->trace.events) {
		const struct prb_kineto_event **place;

		if (e->step < 0 ||
		    (on_gpu ? !prb_kineto_on_gpu(e->kind) : e->kind != PRB_KINETO_OP))
			continue;
		place = prb_vec_push(&sorted.list);
		if (!place) {
			prb_vec_free(&sorted.list);
			return prb_error_nomem();
		}
		*place = e;
	}
	if (sorted.list.count)
		qsort_r(sorted.list.items, sorted.list.count, sizeof(*sorted.list.items), compare,
			&ops->trace);
	err = group(&ops->trace, &sorted, ret);
	prb_vec_free(&sorted.list);
	return err;
}

struct prb_error *prb_ops_sum(struct prb_ops *ops)
{
	const struct prb_kineto *trace = &ops->trace;
	const struct prb_kineto_event *e;
	int64_t inside = 0;

	prb_vec_each (e, &trace->events) {
		if (e->step < 0 || e->kind != PRB_KINETO_OP)
			continue;
		ops->operations += !is_again(trace, e);
		if (e->parent == PRB_KINETO_NONE && e->thread == trace->thread)
			inside += e->duration;
	}
	ops->duration = trace->last_step - trace->first_step;
	ops->outside = ops->duration > inside ? ops->duration - inside : 0;
	PRB_TRY(sum(ops, false, &ops->operators));
	PRB_TRY(sum(ops, true, &ops->kernels));
	return prb_kineto_gpus(trace, &ops->gpus);
}

void prb_ops_deinit(struct prb_ops *ops)
{
	free(ops->command);
	free(ops->python);
	free(ops->note);
	prb_str_deinit(&ops->trace_text);
	prb_vec_free(&ops->steps);
	prb_vec_free(&ops->operators.list);
	prb_vec_free(&ops->kernels.list);
	prb_kineto_gpus_deinit(&ops->gpus);
	prb_kineto_deinit(&ops->trace);
}

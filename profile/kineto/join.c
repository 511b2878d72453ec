/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where events belong: operators in operators and modules, kernels to the operator that launched
 * them, backward to the module whose forward it is of. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "profile/kineto/private.h"

enum { DEEPEST = 1024, MOST_THREADS = 4096 };

/** An event that has not ended. */
struct open {
	int64_t end;
	uint32_t op, module;
	enum prb_kineto_part part;
	unsigned depth;
};

struct stack {
	PRB_VEC(struct open) list;
};

struct joiner {
	struct prb_kineto *trace;
	PRB_VEC(struct stack) stacks;
	struct prb_number_map by_thread, by_sequence, by_correlation;
};

static const struct open outside = {INT64_MAX, PRB_KINETO_NONE, PRB_KINETO_NONE, PRB_KINETO_OTHER,
				    0};

static void joiner_deinit(struct joiner *j)
{
	struct stack *stack;

	prb_vec_each (stack, &j->stacks)
		prb_vec_free(&stack->list);
	prb_vec_free(&j->stacks);
	prb_number_map_deinit(&j->by_thread);
	prb_number_map_deinit(&j->by_sequence);
	prb_number_map_deinit(&j->by_correlation);
}

bool prb_kineto_on_gpu(enum prb_kineto_kind kind)
{
	return kind >= PRB_KINETO_KERNEL && kind < PRB_KINETO_KINDS;
}

const char *prb_kineto_kind_name(enum prb_kineto_kind kind)
{
	static const char *const names[PRB_KINETO_KINDS] = {
		[PRB_KINETO_KERNEL] = "kernel",
		[PRB_KINETO_COLLECTIVE] = "collective",
		[PRB_KINETO_COPY] = "copy",
		[PRB_KINETO_SET] = "set",
	};

	return names[kind];
}

const char *prb_kineto_part_name(enum prb_kineto_part part)
{
	static const char *const names[PRB_KINETO_PARTS] = {
		[PRB_KINETO_FORWARD] = "forward",
		[PRB_KINETO_BACKWARD] = "backward",
		[PRB_KINETO_OPTIMIZER] = "optimizer",
		[PRB_KINETO_DATA] = "data loading",
	};

	return names[part];
}

const struct prb_kineto_module *prb_kineto_module_of(const struct prb_kineto *trace,
						     const struct prb_kineto_event *event)
{
	return event->module < trace->modules.count ? &trace->modules.items[event->module] : NULL;
}

/** NULL: of too many threads. */
static struct prb_error *stack_of(struct joiner *j, int64_t thread, struct stack **ret)
{
	size_t index;

	*ret = NULL;
	if (!prb_number_map_get(&j->by_thread, (uint64_t)thread, &index)) {
		index = j->stacks.count;
		if (index >= MOST_THREADS)
			return NULL;
		if (!prb_vec_push(&j->stacks) ||
		    !prb_number_map_put(&j->by_thread, (uint64_t)thread, index))
			return prb_error_nomem();
	}
	*ret = &j->stacks.items[index];
	return NULL;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_of_backward(const char *name)
{
	return begins(name, "autograd::engine::") || strstr(name, "Backward");
}

/** What a range, or a node of autograd, is a part of. */
static enum prb_kineto_part part_of(const struct prb_kineto_event *e, enum prb_kineto_part above)
{
	if (e->kind == PRB_KINETO_OP)
		return begins(e->name, "autograd::engine::evaluate_function") ? PRB_KINETO_BACKWARD
									      : above;
	if (above == PRB_KINETO_BACKWARD || e->kind == PRB_KINETO_LAUNCH)
		return above;
	if (e->kind == PRB_KINETO_MODULE)
		return PRB_KINETO_FORWARD;
	if (begins(e->name, "Optimizer."))
		return PRB_KINETO_OPTIMIZER;
	return begins(e->name, "enumerate(DataLoader)") ? PRB_KINETO_DATA : above;
}

/** The module of forward, for an operator of backward. */
static struct prb_error *follow_sequence(struct joiner *j, struct prb_kineto_event *e)
{
	size_t module;

	if (e->kind != PRB_KINETO_OP || e->sequence < 0)
		return NULL;
	if (!is_of_backward(e->name))
		return prb_number_map_put(&j->by_sequence, (uint64_t)e->sequence, e->module)
			       ? NULL
			       : prb_error_nomem();
	if (prb_number_map_get(&j->by_sequence, (uint64_t)e->sequence, &module))
		e->module = (uint32_t)module;
	return NULL;
}

/** Those that end before @p e does are not around it. */
static const struct open *around(struct stack *stack, const struct prb_kineto_event *e)
{
	while (stack->list.count) {
		const struct open *top = &stack->list.items[stack->list.count - 1];

		if (top->end > e->begin && top->end >= e->begin + e->duration)
			return top;
		stack->list.count--;
	}
	return &outside;
}

static void leave_parent(struct prb_kineto *trace, const struct prb_kineto_event *e)
{
	struct prb_kineto_event *parent;

	if (e->kind != PRB_KINETO_OP || e->parent == PRB_KINETO_NONE)
		return;
	parent = &trace->events.items[e->parent];
	parent->self -= e->duration < parent->self ? e->duration : parent->self;
}

/** An event of a processor's thread, after those before it. */
static struct prb_error *place(struct joiner *j, uint32_t index)
{
	struct prb_kineto_event *e = &j->trace->events.items[index];
	const bool is_op = e->kind == PRB_KINETO_OP;
	const struct open *top;
	struct stack *stack;
	struct open *added;

	PRB_TRY(stack_of(j, e->thread, &stack));
	if (!stack)
		return NULL;
	top = around(stack, e);
	e->self = e->duration;
	e->parent = top->op;
	e->depth = top->depth;
	e->part = part_of(e, top->part);
	if (e->kind != PRB_KINETO_MODULE)
		e->module = top->module;
	e->flops = is_op ? prb_kineto_flops(e) : 0;
	leave_parent(j->trace, e);
	PRB_TRY(follow_sequence(j, e));
	if (e->kind == PRB_KINETO_LAUNCH && e->correlation >= 0 &&
	    !prb_number_map_put(&j->by_correlation, (uint64_t)e->correlation, index))
		return prb_error_nomem();
	if (stack->list.count >= DEEPEST)
		return NULL;
	added = prb_vec_push(&stack->list);
	if (!added)
		return prb_error_nomem();
	*added = (struct open){e->begin + e->duration, is_op ? index : e->parent, e->module,
			       e->part, e->depth + is_op};
	return NULL;
}

/** What runs on a GPU belongs where it was launched. */
static void place_on_gpu(struct joiner *j, struct prb_kineto_event *e)
{
	const struct prb_kineto_event *launch;
	size_t index;

	e->self = e->duration;
	if (e->correlation < 0 ||
	    !prb_number_map_get(&j->by_correlation, (uint64_t)e->correlation, &index))
		return;
	launch = &j->trace->events.items[index];
	e->parent = launch->parent;
	e->module = launch->module;
	e->part = launch->part;
	e->step = launch->step;
}

static bool step_mark(const struct prb_kineto_event *e, int64_t *ret)
{
	static const char mark[] = "probing step ";

	if (e->kind != PRB_KINETO_RANGE || !begins(e->name, mark))
		return false;
	*ret = strtoll(e->name + sizeof(mark) - 1, NULL, 10);
	return true;
}

/** Which step each event of a processor is in. The last mark ends the last step. */
static void number_steps(struct prb_kineto *trace)
{
	struct prb_kineto_event *e, *last = NULL;
	int64_t step = -1, number;
	bool any = false;

	prb_vec_each (e, &trace->events) {
		if (prb_kineto_on_gpu(e->kind))
			continue;
		if (step_mark(e, &number)) {
			step = number;
			last = e;
			if (!any)
				trace->first_step = e->begin;
			trace->thread = e->thread;
			any = true;
		}
		e->step = step;
	}
	trace->last_step = last ? last->begin : 0;
	for (e = last; e && e < trace->events.items + trace->events.count; e++)
		e->step = -1;
}

struct prb_error *prb_kineto_join(struct prb_kineto *trace)
{
	__attribute__((cleanup(joiner_deinit))) struct joiner j = {.trace = trace};
	struct prb_kineto_event *e;

	number_steps(trace);
	for (uint32_t i = 0; i < trace->events.count; i++)
		if (!prb_kineto_on_gpu(trace->events.items[i].kind))
			PRB_TRY(place(&j, i));
	prb_vec_each (e, &trace->events)
		if (prb_kineto_on_gpu(e->kind))
			place_on_gpu(&j, e);
	return NULL;
}

/** Shares the text of a part of the range's name. */
static struct prb_error *share(struct prb_kineto *trace, const char *from, size_t length,
			       const char **ret)
{
	prb_auto_free char *text = strndup(from, length);

	return text ? prb_pool_share(trace->pool, text, ret) : prb_error_nomem();
}

/* "module PATH: CLASS (FILE:LINE)"; of a program's own range of such a name, what is there. */
struct prb_error *prb_kineto_take_apart(struct prb_kineto *trace, struct prb_kineto_event *event)
{
	const char *path = event->name + strlen("module "), *class = strstr(path, ": ");
	const char *file = class ? strstr(class, " (") : NULL,
		   *line = file ? strrchr(file, ':') : NULL;
	struct prb_kineto_module *module = prb_vec_push(&trace->modules);

	if (!module)
		return prb_error_nomem();
	event->module = (uint32_t)(trace->modules.count - 1);
	if (!line)
		return prb_pool_share(trace->pool, path, &module->path);
	module->line = strtoll(line + 1, NULL, 10);
	PRB_TRY(share(trace, path, (size_t)(class - path), &module->path));
	PRB_TRY(share(trace, class + 2, (size_t)(file - class - 2), &module->class));
	return share(trace, file + 2, (size_t)(line - file - 2), &module->file);
}

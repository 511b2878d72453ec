/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The waiters of tasks. A task notes the future that it waits for. Where that is not a task but a
 * future that others complete (gather, wait, shield, wait_for up to 3.11), the others hold it in
 * their done-callbacks: in a cell, as a bound argument, or as the group that the parent waits in.
 * From 3.14 on, tasks also note who awaits them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/asyncio/private.h"

enum { NEST_MAX = 16, HELD_MAX = 64, WAITERS_MAX = 1 << 22 };

/* A task that waits for a future. */
struct wait {
	uint64_t future;
	size_t task;
};

struct search {
	struct prb_asyncio_reader *t;
	const struct wait *waits; /* sorted by future */
	size_t wait_count;
	size_t child;	/* the task whose awaiters are looked for */
	unsigned depth; /* futures that complete futures */
};

bool prb_asyncio_index(const struct prb_asyncio_reader *t, uint64_t address, size_t *ret)
{
	return prb_number_map_get(&t->tasks->by_address, address, ret);
}

static int by_future(const void *a, const void *b)
{
	const struct wait *left = a, *right = b;

	if (left->future != right->future)
		return left->future < right->future ? -1 : 1;
	return (left->task > right->task) - (left->task < right->task);
}

static int by_index(const void *a, const void *b)
{
	const size_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static struct prb_error *add_awaiter(struct search *s, size_t awaiter)
{
	struct prb_asyncio_task *child = &s->t->tasks->list.items[s->child];
	size_t *slot;

	if (awaiter == s->child || child->awaiters.count >= WAITERS_MAX)
		return NULL;
	slot = prb_vec_push(&child->awaiters);
	if (!slot)
		return prb_error_nomem();
	*slot = awaiter;
	return NULL;
}

/* All tasks that wait for this very future. */
static struct prb_error *add_waiters(struct search *s, uint64_t future)
{
	size_t low = 0, high = s->wait_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->waits[middle].future < future)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->wait_count && s->waits[low].future == future; low++)
		PRB_TRY(add_awaiter(s, s->waits[low].task));
	return NULL;
}

static struct prb_error *visit_cells(struct prb_asyncio_reader *t, uint64_t function,
				     prb_object_visit *visit, void *context)
{
	uint64_t closure, cells[HELD_MAX], count, content;

	if (t->r.layout->function_closure <= 0)
		return NULL;
	PRB_TRY(prb_repr_word(&t->r, function + (uint64_t)t->r.layout->function_closure, &closure));
	if (!closure)
		return NULL;
	PRB_TRY(prb_repr_tuple(&t->r, closure, cells, HELD_MAX, &count));
	for (uint64_t i = 0; i < PRB_MIN(count, (uint64_t)HELD_MAX); i++) {
		PRB_TRY(prb_repr_member(&t->r, cells[i], 0, &content));
		if (content)
			PRB_TRY(visit(context, content));
	}
	return NULL;
}

struct prb_error *prb_callback_each(struct prb_asyncio_reader *t, uint64_t callback,
				    prb_object_visit *visit, void *context)
{
	struct prb_type *type;
	uint64_t members[2], items[HELD_MAX], count; /* function; arguments, or self */

	PRB_TRY(prb_repr_type_of(&t->r, callback, &type));
	if (prb_type_is(type, "function"))
		return visit_cells(t, callback, visit, context);
	if (!prb_type_is(type, "method") && !prb_type_is(type, "functools.partial"))
		return NULL;
	PRB_TRY(prb_repr_member(&t->r, callback, 0, &members[0]));
	PRB_TRY(prb_repr_member(&t->r, callback, 1, &members[1]));
	if (prb_type_is(type, "method"))
		return visit(context, members[1]);
	PRB_TRY(prb_repr_tuple(&t->r, members[1], items, HELD_MAX, &count));
	for (uint64_t i = 0; i < PRB_MIN(count, (uint64_t)HELD_MAX); i++)
		PRB_TRY(visit(context, items[i]));
	return prb_repr_is(&t->r, members[0], "function")
		       ? visit_cells(t, members[0], visit, context)
		       : NULL;
}

static struct prb_error *search_callbacks(struct search *s, const struct prb_future *future);

struct prb_error *prb_asyncio_group_parent(struct prb_asyncio_reader *t, uint64_t object,
					   uint64_t *ret)
{
	struct prb_type *type;
	struct prb_error *err;

	*ret = 0;
	PRB_TRY(prb_repr_type_of(&t->r, object, &type));
	if (!(type->flags & PRB_PY_HEAP_TYPE))
		return NULL;
	err = prb_repr_attribute(&t->r, object, "_parent_task", ret);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		*ret = 0;
	return err;
}

/* A TaskGroup: its parent waits for all of its tasks. */
static struct prb_error *add_parent(struct search *s, uint64_t object)
{
	uint64_t parent;
	size_t index;

	PRB_TRY(prb_asyncio_group_parent(s->t, object, &parent));
	return parent && prb_asyncio_index(s->t, parent, &index) ? add_awaiter(s, index) : NULL;
}

static struct prb_error *visit_held(void *context, uint64_t object)
{
	struct search *s = context;
	struct prb_future future;

	PRB_TRY(prb_future_open(s->t, object, &future));
	if (future.kind == PRB_FUTURE_NONE)
		return add_parent(s, object);
	/* A callback may do anything with another task, as cancelling it. */
	if (future.is_task)
		return NULL;
	PRB_TRY(add_waiters(s, object));
	return search_callbacks(s, &future);
}

/* One callback that makes no sense does not hide the others. */
static struct prb_error *visit_callback(void *context, uint64_t callback)
{
	struct search *s = context;
	struct prb_error *err = prb_callback_each(s->t, callback, visit_held, s);

	if (!prb_error_catch(&err, PRB_ERROR_FAULT))
		prb_error_catch(&err, PRB_ERROR_BAD_DATA);
	return err;
}

static struct prb_error *search_callbacks(struct search *s, const struct prb_future *future)
{
	if (s->depth >= NEST_MAX)
		return NULL;
	s->depth++;

	struct prb_error *err = prb_future_callbacks(s->t, future, visit_callback, s);

	s->depth--;
	return err;
}

static struct prb_error *visit_awaited_by(void *context, uint64_t object)
{
	struct search *s = context;
	size_t index;

	return prb_asyncio_index(s->t, object, &index) ? add_awaiter(s, index) : NULL;
}

static struct prb_error *find_awaiters(struct search *s)
{
	uint64_t address = s->t->tasks->list.items[s->child].address;
	struct prb_future future;

	PRB_TRY(add_waiters(s, address));
	PRB_TRY(prb_future_open(s->t, address, &future));
	if (future.kind == PRB_FUTURE_NONE)
		return NULL;
	PRB_TRY(prb_future_awaited_by(s->t, &future, visit_awaited_by, s));
	return search_callbacks(s, &future);
}

/* Sorts the awaiters, each once, and notes the child in each. */
static struct prb_error *finish(struct prb_asyncio_tasks *tasks, size_t child)
{
	struct prb_asyncio_task *task = &tasks->list.items[child];
	size_t count = 0;

	if (!task->awaiters.count)
		return NULL;
	qsort(task->awaiters.items, task->awaiters.count, sizeof(size_t), by_index);
	for (size_t i = 0; i < task->awaiters.count; i++) {
		size_t awaiter = task->awaiters.items[i], *slot;

		if (count && task->awaiters.items[count - 1] == awaiter)
			continue;
		task->awaiters.items[count++] = awaiter;
		slot = prb_vec_push(&tasks->list.items[awaiter].children);
		if (!slot)
			return prb_error_nomem();
		*slot = child;
	}
	task->awaiters.count = count;
	return NULL;
}

static bool has_ended(const struct prb_asyncio_task *task)
{
	return task->state != PRB_PY_TASK_PENDING && task->state != PRB_PY_TASK_RUNNING;
}

struct prb_error *prb_asyncio_relate(struct prb_asyncio_reader *t)
{
	struct prb_asyncio_tasks *tasks = t->tasks;
	prb_auto_free struct wait *waits = calloc(tasks->list.count, sizeof(*waits));
	struct search s = {.t = t, .waits = waits};

	if (!waits)
		return prb_error_nomem();
	for (size_t i = 0; i < tasks->list.count; i++)
		if (tasks->list.items[i].future)
			waits[s.wait_count++] = (struct wait){tasks->list.items[i].future, i};
	qsort(waits, s.wait_count, sizeof(*waits), by_future);
	for (s.child = 0; s.child < tasks->list.count; s.child++) {
		struct prb_asyncio_task *task = &tasks->list.items[s.child];

		if (has_ended(task))
			continue;
		t->r.walked = 0;

		struct prb_error *err = find_awaiters(&s);

		prb_asyncio_tolerate(&err, &task->error);
		PRB_TRY(err);
		PRB_TRY(finish(tasks, s.child));
	}
	return NULL;
}

static bool awaits_one(const struct prb_asyncio_task *task)
{
	return task->state == PRB_PY_TASK_PENDING && task->waits_kind && !task->limited &&
	       (!strcmp(task->waits_kind, "task") || !strcmp(task->waits_kind, "gather")) &&
	       task->children.count == 1;
}

size_t prb_asyncio_circle(const struct prb_asyncio_tasks *tasks, size_t first, size_t *list)
{
	size_t at = first, count = 0;

	while (count < PRB_ASYNCIO_CIRCLE_MAX && at >= first &&
	       awaits_one(&tasks->list.items[at])) {
		list[count++] = at;
		at = tasks->list.items[at].children.items[0];
		if (at == first)
			return count;
	}
	return 0;
}

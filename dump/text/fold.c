/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/text/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	MAX_PERIOD = 16, /* frames in one round of a recursion */
	MIN_TIMES = 3,	 /* rounds of several frames needed to fold */
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_locals(const struct prb_dump_frame *a, const struct prb_dump_frame *b)
{
	if (a->locals.count != b->locals.count)
		return false;
	for (size_t i = 0; i < a->locals.count; i++) {
		const struct prb_dump_local *x = &a->locals.items[i], *y = &b->locals.items[i];

		if (x->kind != y->kind || !same_text(x->name, y->name) ||
		    !same_text(x->value, y->value))
			return false;
	}
	return true;
}

/** True if both would be shown by the same text. */
static bool same_frame(const struct prb_dump_frame *a, const struct prb_dump_frame *b)
{
	if (a->kind != b->kind || a->line != b->line || a->end_line != b->end_line ||
	    !same_text(a->func, b->func) || !same_text(a->qualname, b->qualname) ||
	    !same_text(a->full_func, b->full_func) || !same_text(a->file, b->file) ||
	    !same_text(a->error, b->error) || !same_text(a->source, b->source) ||
	    !same_locals(a, b))
		return false;
	if (a->source && (a->col != b->col || a->end_col != b->end_col))
		return false;
	return a->func ? same_text(a->module, b->module) : a->ip == b->ip;
}

static bool same_stack(const struct prb_dump_thread *a, const struct prb_dump_thread *b)
{
	if (a->frames.count != b->frames.count)
		return false;
	for (size_t i = 0; i < a->frames.count; i++)
		if (!same_frame(&a->frames.items[i], &b->frames.items[i]))
			return false;
	return true;
}

/**
 * Only sleeping threads that were read completely are folded: a running thread is of interest
 * itself.
 */
static bool foldable(const struct prb_dump_thread *t)
{
	return t->tid && t->state && strcmp(t->state, "running") != 0 && !t->gc &&
	       !same_text(t->gil, "holds") && t->read != PRB_READ_UNSTABLE;
}

static bool same_thread(const struct prb_dump_thread *a, const struct prb_dump_thread *b)
{
	return a->interpreter == b->interpreter && same_text(a->state, b->state) &&
	       same_text(a->waits_for, b->waits_for) && same_text(a->gil, b->gil) &&
	       same_text(a->error, b->error) && same_stack(a, b);
}

static struct prb_fold_group *find_group(struct prb_fold_groups *groups,
					 const struct prb_dump_thread *main_thread,
					 const struct prb_dump_thread *thread)
{
	struct prb_fold_group *group;

	prb_vec_each (group, &groups->list) {
		const struct prb_dump_thread *first = group->threads.items[0];

		if (first != main_thread && foldable(first) && same_thread(first, thread))
			return group;
	}
	return NULL;
}

static bool is_active(const struct prb_dump_thread *t)
{
	return same_text(t->gil, "holds") || same_text(t->state, "running");
}

static struct prb_error *add(struct prb_fold_groups *groups, struct prb_fold_group *group,
			     const struct prb_dump_thread *thread)
{
	const struct prb_dump_thread **place;

	if (!group)
		group = prb_vec_push(&groups->list);
	if (!group)
		return prb_error_nomem();
	place = prb_vec_push(&group->threads);
	if (!place) {
		if (!group->threads.count)
			groups->list.count--;
		return prb_error_nomem();
	}
	*place = thread;
	return NULL;
}

struct prb_error *prb_fold_threads(const struct prb_dump *dump, bool fold,
				   struct prb_fold_groups *ret)
{
	const struct prb_dump_thread *thread, *main_thread = dump->threads.items;

	for (int active = 1; active >= 0; active--) {
		prb_vec_each (thread, &dump->threads) {
			struct prb_fold_group *group = NULL;

			if (is_active(thread) != active)
				continue;
			if (fold && thread != main_thread && foldable(thread))
				group = find_group(ret, main_thread, thread);
			PRB_TRY(add(ret, group, thread));
		}
	}
	return NULL;
}

struct prb_error *prb_fold_alone(const struct prb_dump *dump, bool *alone)
{
	__attribute__((cleanup(prb_fold_groups_deinit))) struct prb_fold_groups groups = {};
	const struct prb_fold_group *group;

	PRB_TRY(prb_fold_threads(dump, true, &groups));
	prb_vec_each (group, &groups.list)
		if (group->threads.count == 1)
			alone[group->threads.items[0] - dump->threads.items] = true;
	return NULL;
}

void prb_fold_groups_deinit(struct prb_fold_groups *groups)
{
	struct prb_fold_group *group;

	prb_vec_each (group, &groups->list)
		prb_vec_free(&group->threads);
	prb_vec_free(&groups->list);
}

/* Tasks. */

static bool same_tasks(const struct prb_dump_task *a, const struct prb_dump_task *b)
{
	if (a->kind != b->kind || a->current || b->current || a->frames.count != b->frames.count ||
	    a->awaiters.count != b->awaiters.count || !same_text(a->error, b->error))
		return false;
	for (size_t i = 0; i < a->frames.count; i++)
		if (!same_frame(&a->frames.items[i], &b->frames.items[i]))
			return false;
	for (size_t i = 0; i < a->awaiters.count; i++)
		if (a->awaiters.items[i].at != b->awaiters.items[i].at)
			return false; /* their names do not matter, as those of the tasks */
	return true;
}

static bool belongs(const struct prb_dump *dump, const struct prb_dump_task *task, pid_t tid)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads)
		if (task->tid && thread->tid == task->tid)
			return task->tid == tid;
	return dump->threads.count && dump->threads.items[0].tid == tid;
}

static struct prb_error *add_task(struct prb_fold_task_groups *groups, bool fold,
				  const struct prb_dump_task *task)
{
	const struct prb_dump_task **place;
	enum { COMPARED = 300 }; /* of a hundred thousand tasks, each may be another one */
	struct prb_fold_tasks *group = NULL;

	for (size_t i = 0; fold && !group && i < groups->list.count && i < COMPARED; i++)
		if (same_tasks(groups->list.items[i].tasks.items[0], task))
			group = &groups->list.items[i];
	if (!group) {
		group = prb_vec_push(&groups->list);
		if (!group)
			return prb_error_nomem();
		group->same_wait = true;
	}
	place = prb_vec_push(&group->tasks);
	if (!place)
		return prb_error_nomem();
	*place = task;
	group->same_wait &= same_text(group->tasks.items[0]->waits_for, task->waits_for);
	return NULL;
}

static int larger_first(const void *a, const void *b)
{
	const struct prb_fold_tasks *x = a, *y = b;
	bool x_first = x->tasks.items[0]->current, y_first = y->tasks.items[0]->current;

	if (x_first != y_first)
		return x_first ? -1 : 1;
	if (x->tasks.count != y->tasks.count)
		return x->tasks.count > y->tasks.count ? -1 : 1;
	/* As they were found. */
	return (x->tasks.items[0] > y->tasks.items[0]) - (x->tasks.items[0] < y->tasks.items[0]);
}

/* "worker-2" comes before "worker-10". */
static int by_name(const void *a, const void *b)
{
	const char *x = (*(const struct prb_dump_task *const *)a)->name;
	const char *y = (*(const struct prb_dump_task *const *)b)->name;
	size_t x_length = x ? strlen(x) : 0, y_length = y ? strlen(y) : 0;

	if (x_length != y_length)
		return x_length < y_length ? -1 : 1;
	return x_length ? strcmp(x, y) : 0;
}

struct prb_error *prb_fold_tasks(const struct prb_dump *dump, pid_t tid, bool fold,
				 struct prb_fold_task_groups *ret)
{
	const struct prb_dump_task *task;
	struct prb_fold_tasks *group;

	prb_vec_each (task, &dump->tasks)
		if (belongs(dump, task, tid))
			PRB_TRY(add_task(ret, fold, task));
	prb_vec_each (group, &ret->list)
		qsort(group->tasks.items, group->tasks.count, sizeof(*group->tasks.items), by_name);
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), larger_first);
	return NULL;
}

void prb_fold_tasks_deinit(struct prb_fold_task_groups *groups)
{
	struct prb_fold_tasks *group;

	prb_vec_each (group, &groups->list)
		prb_vec_free(&group->tasks);
	prb_vec_free(&groups->list);
}

/** How often the first @p period frames come one after the other. */
static size_t repetitions(const struct prb_dump_frame *frames, size_t count, size_t period)
{
	size_t same = period;

	while (same < count && same_frame(&frames[same - period], &frames[same]))
		same++;
	return same / period;
}

static bool is_of_threading(const struct prb_dump_frame *frame, const char *func)
{
	static const char last[] = "/threading.py";
	size_t length = frame->file ? strlen(frame->file) : 0, end = strlen(last);

	return frame->kind == PRB_FRAME_PYTHON && same_text(frame->func, func) && length > end &&
	       !strcmp(frame->file + length - end, last) && !frame->error && !frame->source &&
	       !frame->locals.count;
}

size_t prb_fold_start(const struct prb_dump_frame *frames, size_t count)
{
	size_t at = count && is_of_threading(&frames[0], "run");

	if (count < at + 2 || !is_of_threading(&frames[at], "_bootstrap_inner") ||
	    !is_of_threading(&frames[at + 1], "_bootstrap"))
		return 0;
	/* Files with the same short name may differ. */
	for (size_t i = 1; i < at + 2; i++)
		if (!same_text(frames[0].file, frames[i].file))
			return 0;
	return at + 2;
}

struct prb_fold_run prb_fold_recursion(const struct prb_dump_frame *frames, size_t count)
{
	for (size_t period = 1; period <= MAX_PERIOD && period < count; period++) {
		size_t times = repetitions(frames, count, period);

		if (times >= (period == 1 ? 2 : MIN_TIMES))
			return (struct prb_fold_run){period, times};
	}
	return (struct prb_fold_run){1, 1};
}

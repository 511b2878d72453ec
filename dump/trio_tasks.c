/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/trio_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/str.h"
#include "dump/inspect.h"
#include "dump/tasks/consistent_read.h"
#include "values/trio.h"

enum { CHAIN_MAX = 32 };

struct attempt {
	struct prb_python *py;
	struct prb_mem *mem;
	uint64_t set;
	struct prb_trio_tasks tasks;
};

static struct prb_error *read_once(void *context)
{
	struct attempt *a = context;

	prb_trio_deinit(&a->tasks);
	return prb_trio_read(a->py, a->mem, a->set, &a->tasks);
}

/* The frame of trio.run() has the runner as a variable. */
static bool find_frame(const struct prb_dump *dump, pid_t tid, unsigned *ret)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;

	prb_vec_each (thread, &dump->threads) {
		*ret = 0;
		prb_vec_each (frame, &thread->frames) {
			if (thread->tid == tid && frame->func && !strcmp(frame->func, "run") &&
			    frame->file && strstr(frame->file, "/trio/_core/_run.py"))
				return true;
			*ret += frame->kind == PRB_FRAME_PYTHON;
		}
	}
	return false;
}

static struct prb_error *find_set(struct prb_target *target, const struct prb_dump *dump, pid_t tid,
				  uint64_t *ret)
{
	struct prb_inspect_place place = {.tid = tid};
	const struct prb_repr_options options = {.max_total = 200};
	struct prb_inspected found = {};
	struct prb_error *err;

	*ret = 0;
	if (!find_frame(dump, tid, &place.depth))
		return NULL;
	err = prb_inspect(target, &place, "runner.tasks", &options, &found);
	if (err)
		return err;
	*ret = found.address;
	prb_inspected_deinit(&found);
	return NULL;
}

/* What all tasks have innermost. */
static bool is_trap(const struct prb_trio_frame *frame)
{
	return frame->code.file && strstr(frame->code.file, "/trio/_core/_traps.py");
}

/* Tasks of trio itself, such as the one that all others descend from. */
static bool is_own(const struct prb_trio_task *task)
{
	return task->name && *task->name == '<';
}

static struct prb_error *add_frames(struct prb_dump *dump, struct prb_dump_task *to,
				    const struct prb_trio_task *task)
{
	const struct prb_trio_frame *from;

	prb_vec_each (from, &task->frames) {
		struct prb_dump_frame *frame = is_trap(from) ? NULL : prb_vec_push(&to->frames);

		if (is_trap(from))
			continue;
		if (!frame)
			return prb_error_nomem();
		frame->kind = PRB_FRAME_PYTHON;
		frame->line = from->location.line;
		frame->end_line = from->location.end_line;
		frame->col = from->location.col;
		frame->end_col = from->location.end_col;
		PRB_TRY(prb_pool_share(dump->pool, from->code.name, &frame->func));
		PRB_TRY(prb_pool_share(dump->pool, from->code.file, &frame->file));
		PRB_TRY(prb_pool_share(dump->pool, from->qualname, &frame->qualname));
	}
	return NULL;
}

/* The tasks by their addresses, and which of them wait for their children. */
struct family {
	const struct prb_trio_tasks *tasks;
	struct prb_number_map by_address, parents;
};

static void family_guard(struct family *family)
{
	prb_number_map_deinit(&family->by_address);
	prb_number_map_deinit(&family->parents);
}

static struct prb_error *family_init(struct family *family, const struct prb_trio_tasks *tasks)
{
	family->tasks = tasks;
	for (size_t i = 0; i < tasks->list.count; i++)
		if (!prb_number_map_put(&family->by_address, tasks->list.items[i].address, i) ||
		    !prb_number_map_put(&family->parents, tasks->list.items[i].parent, i))
			return prb_error_nomem();
	return NULL;
}

static const struct prb_trio_task *find_task(const struct family *family, uint64_t address)
{
	size_t index;

	return address && prb_number_map_get(&family->by_address, address, &index)
		       ? &family->tasks->list.items[index]
		       : NULL;
}

/* Where the task is in the program's code. */
static const struct prb_trio_frame *own_frame(const struct prb_trio_task *task)
{
	const struct prb_trio_frame *frame;

	prb_vec_each (frame, &task->frames)
		if (frame->code.file && !strstr(frame->code.file, "/trio/"))
			return frame;
	return NULL;
}

/* "Lock held by task f, in f app.py:31". */
static struct prb_error *put_holder(const struct prb_trio_task *owner, char **ret)
{
	const struct prb_trio_frame *frame = own_frame(owner);
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "Lock held by task %s", owner->name ? owner->name : "?");
	if (frame)
		prb_str_printf(&text, ", in %s %s:%d",
			       frame->qualname ? frame->qualname : frame->code.name,
			       strrchr(frame->code.file, '/') ? strrchr(frame->code.file, '/') + 1
							      : frame->code.file,
			       frame->location.line);
	free(*ret);
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

/* The function of trio that the program called. */
static struct prb_error *put_wait(const struct prb_trio_task *task, char **ret)
{
	const struct prb_trio_frame *frame, *last = NULL;

	prb_vec_each (frame, &task->frames) {
		if (!frame->code.file || !strstr(frame->code.file, "/trio/"))
			break;
		last = frame;
	}
	return last && last->qualname ? prb_str_copy(last->qualname, ret) : NULL;
}

static struct prb_error *add_task(struct prb_dump *dump, const struct family *family,
				  const struct prb_trio_task *task, pid_t tid)
{
	struct prb_dump_task *to = prb_vec_push(&dump->tasks);
	const struct prb_trio_task *owner;

	if (!to)
		return prb_error_nomem();
	to->kind = "task";
	to->tid = tid;
	to->id = task->address;
	to->current = task->running;
	if (task->name)
		PRB_TRY(prb_str_copy(task->name, &to->name));
	if (to->current)
		return NULL;
	PRB_TRY(put_wait(task, &to->waits_for));
	owner = find_task(family, task->owner);
	if (owner && to->waits_for) {
		PRB_TRY(put_holder(owner, &to->waits_for));
		to->lock = task->lock;
		to->holder = task->owner;
		to->limited = task->limited;
	}
	for (int i = 0; i < CHAIN_MAX; i++) {
		PRB_TRY(add_frames(dump, to, task));
		task = find_task(family, task->parent);
		if (!task || is_own(task))
			return NULL;
		PRB_TRY(prb_dump_task_add_awaiter(to, task->name));
		to->awaiters.items[to->awaiters.count - 1].id = task->address;
	}
	return NULL;
}

/* Those that wait for their children have their frames behind those of these. */
static struct prb_error *add_tasks(struct prb_dump *dump, const struct prb_trio_tasks *tasks,
				   pid_t tid)
{
	__attribute__((cleanup(family_guard))) struct family family = {};
	const struct prb_trio_task *task;
	size_t child;

	PRB_TRY(family_init(&family, tasks));
	prb_vec_each (task, &tasks->list)
		if (!is_own(task) &&
		    (task->running || !prb_number_map_get(&family.parents, task->address, &child)))
			PRB_TRY(add_task(dump, &family, task, tid));
	return NULL;
}

static struct prb_error *read_and_add(struct prb_target *target, struct attempt *a,
				      struct prb_tasks *tasks, struct prb_view *view, pid_t tid,
				      struct prb_dump *dump)
{
	bool consistent = false;

	a->mem = prb_view_mem(view);
	PRB_TRY(target->moves ? prb_read_consistent(target, tasks, view, read_once, a, &consistent)
			      : read_once(a));
	if (target->moves && !consistent)
		return prb_error_create(PRB_ERROR_BAD_DATA, "they ran while they were read");
	return add_tasks(dump, &a->tasks, tid);
}

struct prb_error *prb_dump_add_trio(struct prb_target *target, const struct prb_dump_found *found,
				    pid_t tid, struct prb_dump *dump)
{
	struct prb_view *view = NULL;
	struct prb_tasks tasks = {};
	struct attempt a = {};
	struct prb_error *err;

	/* Which of several interpreters' libraries it is, nothing says. */
	if (found->pythons.list.count != 1)
		return NULL;
	a.py = found->pythons.list.items[0];
	PRB_TRY(find_set(target, dump, tid, &a.set));
	if (!a.set)
		return NULL;
	PRB_TRY(prb_tasks_create(target, &tasks));
	err = prb_view_create(target->mem, &view);
	if (!err)
		err = read_and_add(target, &a, &tasks, view, tid, dump);
	prb_trio_deinit(&a.tasks);
	prb_view_destroy(view);
	prb_tasks_deinit(&tasks);
	return err;
}

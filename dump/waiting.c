/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/waiting.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "base/str.h"
#include "base/text.h"
#include "dump/asyncio_tasks.h"
#include "dump/greenlet_stacks.h"
#include "dump/trio_tasks.h"
#include "values/interpreters.h"

enum { CHAIN_MAX = 32, FRAMES_MAX = 1000, TASKS_MAX = 100000 };

/* The first thread with a frame of a file whose path has one of these parts. */
static const struct prb_dump_thread *find_thread(const struct prb_dump *dump,
						 const char *const *parts)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;

	prb_vec_each (thread, &dump->threads)
		prb_vec_each (frame, &thread->frames)
			for (size_t i = 0; frame->file && parts[i]; i++)
				if (strstr(frame->file, parts[i]))
					return thread;
	return NULL;
}

static bool is_loaded(const struct prb_target *target, const char *part)
{
	const struct prb_map *map;

	prb_vec_each (map, &target->maps.list)
		if (strstr(map->path, part))
			return true;
	return false;
}

static struct prb_error *add(struct prb_dump *dump, const char *kind, pid_t tid,
			     struct prb_dump_task **ret)
{
	*ret = prb_vec_push(&dump->tasks);
	if (!*ret)
		return prb_error_nomem();
	(*ret)->kind = kind;
	(*ret)->tid = tid;
	return NULL;
}

static struct prb_error *add_frame(struct prb_dump *dump, struct prb_dump_task *task,
				   const struct prb_py_code *code, const char *qualname,
				   const struct prb_py_location *location)
{
	struct prb_dump_frame *frame = prb_vec_push(&task->frames);

	if (!frame)
		return prb_error_nomem();
	frame->kind = PRB_FRAME_PYTHON;
	frame->line = location->line;
	frame->end_line = location->end_line;
	frame->col = location->col;
	frame->end_col = location->end_col;
	PRB_TRY(prb_pool_share(dump->pool, code ? code->name : NULL, &frame->func));
	PRB_TRY(prb_pool_share(dump->pool, code ? code->file : NULL, &frame->file));
	return prb_pool_share(dump->pool, qualname, &frame->qualname);
}

/* Tasks. */

static bool is_pending(const struct prb_asyncio_task *task)
{
	return task->state == PRB_PY_TASK_PENDING || task->state == PRB_PY_TASK_RUNNING ||
	       task->state == PRB_PY_TASK_UNKNOWN;
}

static bool is_lock(const struct prb_asyncio_task *task)
{
	return task->waits_kind &&
	       (!strcmp(task->waits_kind, "lock") || !strcmp(task->waits_kind, "semaphore"));
}

/* True if each of the tasks that it waits for has to end first, and it has no limit of time. */
static bool waits_for_all(const struct prb_asyncio_task *task)
{
	return task->waits_kind && !task->limited &&
	       (!strcmp(task->waits_kind, "task") || !strcmp(task->waits_kind, "gather"));
}

/* Tasks that wait for other tasks have their frames behind those of these. */
static bool is_in_the_middle(const struct prb_asyncio_tasks *tasks,
			     const struct prb_asyncio_task *task)
{
	const size_t *child;

	prb_vec_each (child, &task->children)
		if (is_pending(&tasks->list.items[*child]))
			return true;
	return false;
}

static struct prb_error *add_task_frames(struct prb_dump *dump, struct prb_dump_task *to,
					 const struct prb_asyncio_task *task)
{
	for (size_t i = task->frames.count; i-- > 0 && to->frames.count < FRAMES_MAX;)
		PRB_TRY(add_frame(dump, to, task->frames.items[i].code,
				  task->frames.items[i].qualname, &task->frames.items[i].location));
	return NULL;
}

/* The frames of the task, and of those that wait for it, one after the other. */
static struct prb_error *add_chain(struct prb_dump *dump, struct prb_dump_task *to,
				   const struct prb_asyncio_tasks *tasks,
				   const struct prb_asyncio_task *task)
{
	for (int i = 0; i < CHAIN_MAX; i++) {
		PRB_TRY(add_task_frames(dump, to, task));
		if (!task->awaiters.count)
			return NULL;
		task = &tasks->list.items[task->awaiters.items[0]];
		PRB_TRY(prb_dump_task_add_awaiter(to, task->name));
		if (waits_for_all(task))
			to->awaiters.items[to->awaiters.count - 1].id = task->address;
	}
	return NULL;
}

/* As add_chain(), of tasks in a circle. */
static struct prb_error *add_circle(struct prb_dump *dump, struct prb_dump_task *to,
				    const struct prb_asyncio_tasks *tasks, const size_t *circle,
				    size_t count)
{
	const struct prb_asyncio_task *task = &tasks->list.items[circle[0]];

	to->holder = tasks->list.items[task->children.items[0]].address;
	PRB_TRY(add_task_frames(dump, to, task));
	for (size_t i = count; i-- > 1;) {
		task = &tasks->list.items[circle[i]];
		PRB_TRY(prb_dump_task_add_awaiter(to, task->name));
		to->awaiters.items[to->awaiters.count - 1].id = task->address;
		PRB_TRY(add_task_frames(dump, to, task));
	}
	return NULL;
}

static struct prb_error *put_wait(struct prb_dump_task *to, const struct prb_asyncio_task *task,
				  double now)
{
	prb_auto_str struct prb_str text = {};

	if (task->waits_for)
		prb_str_puts(&text, task->waits_for);
	else if (task->waits_kind)
		prb_str_puts(&text, task->waits_kind);
	if (task->wakes_at && now && task->wakes_at > now) {
		prb_str_puts(&text, ", ");
		prb_text_duration(&text, task->wakes_at - now);
		prb_str_puts(&text, " left");
	}
	if (text.failed)
		return prb_error_nomem();
	return text.length ? prb_str_copy(prb_str_text(&text), &to->waits_for) : NULL;
}

static struct prb_error *add_reading(struct prb_dump *dump,
				     const struct prb_asyncio_reading *reading)
{
	const struct prb_asyncio_tasks *tasks = &reading->tasks;
	const struct prb_asyncio_task *task;
	struct prb_dump_task *to;

	prb_vec_each (task, &tasks->list) {
		size_t circle[PRB_ASYNCIO_CIRCLE_MAX], count = 0;

		if (!is_pending(task) || dump->tasks.count >= TASKS_MAX)
			continue;
		if (is_in_the_middle(tasks, task)) {
			count = prb_asyncio_circle(tasks, (size_t)(task - tasks->list.items),
						   circle);
			if (!count)
				continue;
		}
		PRB_TRY(add(dump, "task", task->tid, &to));
		to->current = task->state == PRB_PY_TASK_RUNNING;
		to->id = task->address;
		to->lock = is_lock(task) ? task->waits_on : 0;
		to->holder = task->holder;
		to->limited = task->limited;
		if (task->name)
			PRB_TRY(prb_str_copy(task->name, &to->name));
		if (task->error)
			PRB_TRY(prb_str_copy(task->error, &to->error));
		if (to->current)
			continue;
		PRB_TRY(put_wait(to, task, reading->now));
		PRB_TRY(count ? add_circle(dump, to, tasks, circle, count)
			      : add_chain(dump, to, tasks, task));
	}
	if (tasks->error)
		PRB_TRY(prb_dump_warn(dump, prb_format("tasks may be missing: %s", tasks->error)));
	return NULL;
}

/* That nothing could be read is a note: the threads are shown all the same. */
static struct prb_error *note(struct prb_dump *dump, const char *what, struct prb_error *reason)
{
	prb_auto_error struct prb_error *err = reason;

	if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
		return prb_steal(&err);
	if (err->code == PRB_ERROR_UNSUPPORTED)
		return NULL;
	return prb_dump_warn(dump, prb_format("the %s are not shown: %s", what, err->message));
}

static struct prb_error *add_tasks(struct prb_target *target, enum prb_dump_mode mode,
				   const struct prb_dump_found *found, struct prb_dump *dump)
{
	struct prb_asyncio_reading *reading = NULL;
	struct prb_error *err = NULL;

	for (size_t i = 0; i < found->pythons.list.count && !err; i++) {
		err = prb_asyncio_reading_create(target, found->modules,
						 found->pythons.list.items[i], (unsigned)i, mode,
						 true, &reading);
		if (!err)
			err = add_reading(dump, reading);
		prb_asyncio_reading_destroy(reading);
		reading = NULL;
	}
	return note(dump, "tasks of asyncio", err);
}

/* Greenlets. */

struct greenlets {
	struct prb_target *target;
	struct prb_dump *dump;
	enum prb_dump_mode mode;
	pid_t tid;
};

/* gevent's own semaphores are no functions in Python. What its other modules wait for is no lock.
 */
static uint64_t lock_of(const struct prb_greenlet *greenlet)
{
	static const char semaphore[] = "gevent._gevent_c_semaphore.";

	if (greenlet->lock || greenlet->call || !greenlet->linked ||
	    strncmp(greenlet->linked, semaphore, strlen(semaphore)) != 0)
		return greenlet->lock;
	return greenlet->waits_on;
}

/* The only greenlet that is inside of the lock; 0: none, or several. */
static uint64_t holder_of(const struct prb_greenlets *all, uint64_t lock)
{
	const struct prb_greenlet *g;
	uint64_t found = 0;

	prb_vec_each (g, &all->list)
		for (size_t i = 0; lock && i < g->held.count; i++) {
			if (g->held.items[i] != lock)
				continue;
			if (found && found != g->address)
				return 0;
			found = g->address;
		}
	return found;
}

static struct prb_error *add_greenlet(struct greenlets *g, const struct prb_greenlets *all,
				      const struct prb_greenlet *greenlet)
{
	const char *waits = greenlet->linked ? greenlet->linked : greenlet->call;
	const struct prb_greenlet_frame *frame;
	struct prb_dump_task *to;

	PRB_TRY(add(g->dump, "greenlet", g->tid, &to));
	to->id = greenlet->address;
	to->lock = lock_of(greenlet);
	to->holder = holder_of(all, to->lock);
	to->limited = greenlet->limited;
	to->own_pool = greenlet->own_pool;
	if (waits)
		PRB_TRY(prb_str_copy(waits, &to->waits_for));
	if (greenlet->error)
		PRB_TRY(prb_str_copy(greenlet->error, &to->error));
	prb_vec_each (frame, &greenlet->frames)
		if (to->frames.count < FRAMES_MAX)
			PRB_TRY(add_frame(g->dump, to, &frame->code, frame->qualname,
					  &frame->location));
	return NULL;
}

static struct prb_error *read_greenlets(struct greenlets *g, const struct prb_inside *inside)
{
	struct prb_greenlets list = {};
	const struct prb_greenlet *greenlet;
	struct prb_error *err = prb_greenlets_read(inside->py, g->target->mem, inside->interp,
						   PRB_GREENLETS_SOON, &list);

	if (!err)
		err = prb_greenlet_stacks(g->target, g->mode, inside->py, g->target->mem, &list);
	prb_vec_each (greenlet, &list.list)
		if (!err && (greenlet->frames.count || greenlet->error) &&
		    g->dump->tasks.count < TASKS_MAX)
			err = add_greenlet(g, &list, greenlet);
	if (!err && list.doubt)
		err = prb_dump_warn(g->dump,
				    prb_format("greenlets may be missing: %s", list.doubt));
	prb_greenlets_deinit(&list);
	return err;
}

/* Whether the hub is what runs in the thread; else another greenlet does. */
static bool is_in_hub(const struct prb_dump_thread *thread)
{
	static const char *const hubs[] = {"/gevent/hub.py", "/gevent/_hub_primitives.py",
					   "/eventlet/hubs/"};
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		for (size_t i = 0; frame->file && i < PRB_ARRAY_SIZE(hubs); i++)
			if (strstr(frame->file, hubs[i]))
				return true;
	return false;
}

/* The greenlet that runs has the thread's frames. */
static struct prb_error *add_current(struct prb_dump *dump, pid_t tid)
{
	const struct prb_dump_thread *thread;
	struct prb_dump_task *to;

	if (!dump->tasks.count ||
	    strcmp(dump->tasks.items[dump->tasks.count - 1].kind, "greenlet") != 0)
		return NULL;
	prb_vec_each (thread, &dump->threads) {
		if (thread->tid != tid || thread->error || is_in_hub(thread))
			continue;
		PRB_TRY(add(dump, "greenlet", tid, &to));
		to->current = true;
	}
	return NULL;
}

static struct prb_error *each_interpreter(void *context, const struct prb_inside *inside)
{
	struct greenlets *g = context;

	return note(g->dump, "greenlets", read_greenlets(g, inside));
}

struct prb_error *prb_dump_add_tasks(struct prb_target *target, enum prb_dump_mode mode,
				     const struct prb_dump_found *found, struct prb_dump *dump)
{
	static const char *const of_asyncio[] = {"/asyncio/", "/uvloop/", NULL};
	static const char *const of_greenlets[] = {"/gevent/", "/eventlet/", "/greenlet/", NULL};
	static const char *const of_trio[] = {"/trio/_core/_run.py", NULL};
	const struct prb_dump_thread *hub = find_thread(dump, of_greenlets);
	const struct prb_dump_thread *run = find_thread(dump, of_trio);

	if (!found->modules)
		return NULL;
	if (find_thread(dump, of_asyncio) || is_loaded(target, "/uvloop/loop."))
		PRB_TRY(add_tasks(target, mode, found, dump));
	if (run)
		PRB_TRY(note(dump, "tasks of trio",
			     prb_dump_add_trio(target, found, run->tid, dump)));
	if (hub || is_loaded(target, "/gevent/_gevent_c")) {
		struct greenlets g = {target, dump, mode, hub ? hub->tid : dump->main_tid};

		PRB_TRY(prb_inside_each(target, &found->pythons, each_interpreter, &g));
		PRB_TRY(add_current(dump, g.tid));
	}
	return NULL;
}

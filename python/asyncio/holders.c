/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which task holds a lock that another waits for: the one with a frame inside of `async with` of
 * it, unless code on its stack from there on may have released it.
 */
#include <string.h>

#include "base/cleanup.h"
#include "python/asyncio/private.h"
#include "python/runtime/entered.h"
#include "python/runtime/releases.h"

enum {
	MOST_NAMED = 4,
	MOST_FRAMES = 100000, /* of all tasks together */
	MOST_INNER = 1000,    /* innermost frames of a task, among which it waits */
	MOST_INSIDE = 20000,  /* frames inside of something */
};

struct inside {
	const struct prb_asyncio_task *task;
	size_t frame; /* in the task's frames, which have the outermost first */
	unsigned level;
	uint64_t lock;
};

struct holders {
	struct prb_asyncio_reader *t;
	PRB_VEC(struct inside) list;
	bool full; /* not all frames were looked at */
};

/* A task whose frames are looked at. */
struct look {
	struct holders *holders;
	struct prb_asyncio_task *task;
	bool looked; /* `released` is known */
	struct prb_py_released released;
};

/* The locks that the task has released to wait for conditions, in its innermost frames. */
static struct prb_error *find_released(struct look *look)
{
	const struct prb_asyncio_task *task = look->task;
	struct prb_asyncio_reader *t = look->holders->t;

	look->looked = true;
	for (size_t i = task->frames.count, n = 0;
	     i-- > 0 && n < MOST_INNER && look->released.count < PRB_RELEASED_MAX; n++)
		if (task->frames.items[i].frame.address)
			PRB_TRY(prb_python_note_released(
				t->r.py, t->r.mem, &task->frames.items[i].frame, &look->released));
	return NULL;
}

static struct prb_error *add(struct look *look, size_t frame, unsigned level, uint64_t lock)
{
	struct holders *h = look->holders;
	struct inside *slot;

	if (!look->looked)
		PRB_TRY(find_released(look));
	if (prb_python_is_released(&look->released, lock))
		return NULL;
	h->full |= h->list.count == MOST_INSIDE;
	if (h->full)
		return NULL;
	slot = prb_vec_push(&h->list);
	if (!slot)
		return prb_error_nomem();
	*slot = (struct inside){look->task, frame, level, lock};
	return NULL;
}

/* asyncio.timeout(), and that of the package async_timeout. */
static struct prb_error *note_limit(struct look *look, uint64_t object)
{
	struct prb_asyncio_reader *t = look->holders->t;
	prb_auto_str struct prb_str type = {};

	PRB_TRY(prb_error_tolerate(prb_object_type_name(t->r.py, t->r.mem, object, &type), NULL));
	look->task->limited = look->task->limited || !strcmp(prb_str_text(&type), "Timeout");
	return NULL;
}

static struct prb_error *look_at(struct look *look, size_t number)
{
	struct holders *h = look->holders;
	struct prb_py_entered entered;

	PRB_TRY(prb_python_entered(h->t->r.py, h->t->r.mem, &look->task->frames.items[number].frame,
				   &entered));
	for (unsigned i = 0; i < entered.count; i++) {
		bool failed = false;
		uint64_t lock = 0;

		if (!entered.list[i].object)
			continue;
		PRB_TRY(note_limit(look, entered.list[i].object));
		PRB_TRY(prb_error_tolerate(prb_python_lock_of(h->t->r.py, h->t->r.mem,
							      entered.list[i].object,
							      entered.list[i].leave, &lock),
					   &failed));
		if (lock && !failed)
			PRB_TRY(add(look, number, i, lock));
	}
	return NULL;
}

static struct prb_error *look_through(struct holders *h)
{
	struct prb_asyncio_task *task;
	size_t frames = 0;

	prb_vec_each (task, &h->t->tasks->list) {
		struct look look = {.holders = h, .task = task};

		for (size_t i = 0; i < task->frames.count && !h->full; i++) {
			h->full |= ++frames > MOST_FRAMES;
			if (task->frames.items[i].started && task->frames.items[i].frame.address)
				PRB_TRY(prb_error_tolerate(look_at(&look, i), NULL));
		}
	}
	return NULL;
}

static struct prb_error *has_released(struct holders *h, const struct inside *inside, bool *ret)
{
	struct prb_python *py = h->t->r.py;
	struct prb_mem *mem = h->t->r.mem;
	const struct prb_asyncio_task *task = inside->task;
	const struct prb_py_frame *holder = &task->frames.items[inside->frame].frame;

	*ret = task->error || task->frames.count - inside->frame > MOST_INNER;
	for (size_t i = inside->frame; i < task->frames.count && !*ret; i++)
		PRB_TRY(prb_python_may_release(py, mem, holder, inside->level,
					       &task->frames.items[i].frame,
					       task->waits_on == inside->lock, ret));
	return NULL;
}

static void put(struct prb_str *s, const struct inside *inside)
{
	const struct prb_asyncio_task_frame *frame = &inside->task->frames.items[inside->frame];
	const char *name = frame->qualname ? frame->qualname
			   : frame->code   ? frame->code->name
					   : "?",
		   *file = frame->code ? strrchr(frame->code->file, '/') : NULL;

	if (inside->task->name)
		prb_str_puts(s, inside->task->name);
	else
		prb_str_printf(s, "%#llx", (unsigned long long)inside->task->address);
	prb_str_printf(s, ", in %s %s:%d", name,
		       file	     ? file + 1
		       : frame->code ? frame->code->file
				     : "?",
		       frame->location.line);
}

static struct prb_error *tell(struct holders *h, struct prb_asyncio_task *task)
{
	prb_auto_str struct prb_str s = {};
	const struct inside *inside, *only = NULL;
	bool lock = !strcmp(task->waits_kind, "lock"), released = true, failed = false;
	unsigned count = 0;

	prb_vec_each (inside, &h->list)
		if (inside->lock == task->waits_on && ++count)
			only = inside;
	if (!count)
		return NULL;
	if (count == 1 && lock && !h->full)
		PRB_TRY(prb_error_tolerate(has_released(h, only, &released), &failed));
	prb_str_puts(&s, task->waits_for);
	if (!released && !failed) {
		prb_str_puts(&s, ", held by task ");
		put(&s, only);
		task->holder = only->task->address;
	} else {
		count = 0;
		prb_vec_each (inside, &h->list) {
			if (inside->lock != task->waits_on || ++count > MOST_NAMED)
				continue;
			prb_str_puts(&s, count > 1 ? "; "
					 : lock	   ? ", holder unknown; possible: task "
						   : ", inside: task ");
			put(&s, inside);
		}
		if (count > MOST_NAMED)
			prb_str_printf(&s, "; and %u more", count - MOST_NAMED);
	}
	if (s.failed)
		return prb_error_nomem();
	free(task->waits_for);
	task->waits_for = prb_str_take(&s);
	return task->waits_for ? NULL : prb_error_nomem();
}

static bool has_circle(const struct prb_asyncio_tasks *tasks)
{
	size_t list[PRB_ASYNCIO_CIRCLE_MAX];

	for (size_t i = 0; i < tasks->list.count; i++)
		if (prb_asyncio_circle(tasks, i, list))
			return true;
	return false;
}

struct prb_error *prb_asyncio_tell_holders(struct prb_asyncio_reader *t)
{
	struct holders h = {.t = t};
	struct prb_asyncio_task *task;
	struct prb_error *err = NULL;
	bool looked = has_circle(t->tasks);

	if (looked)
		err = look_through(&h);
	prb_vec_each (task, &t->tasks->list) {
		if (err)
			break;
		if (!task->waits_on || !task->waits_kind || !task->waits_for)
			continue;
		if (!looked)
			err = look_through(&h);
		looked = true;
		if (!err)
			err = tell(&h, task);
		if (err)
			break;
	}
	prb_vec_free(&h.list);
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/trio.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "python/repr/builtin/coroutine.h"
#include "python/repr/core/repr_private.h"

enum { NAME_CHARACTERS = 200, TASKS_MAX = 100000, SCOPES_MAX = 64 };

static const uint64_t INFINITE = 0x7ff0000000000000; /* the bits of a float */

struct reading {
	struct prb_repr *r;
	struct prb_trio_tasks *tasks;
	struct prb_error *err;
};

/* An attribute that leads on; 0 if there is none, or None. */
static struct prb_error *find(struct prb_repr *r, uint64_t object, const char *name, uint64_t *ret)
{
	struct prb_error *err = prb_repr_attribute(r, object, name, ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND) || (!err && prb_repr_is_none(r, *ret)))
		*ret = 0;
	return err;
}

static struct prb_error *add_frame(struct prb_repr *r, struct prb_trio_task *task,
				   const struct prb_coroutine *link)
{
	struct prb_trio_frame *frame = prb_vec_push(&task->frames);
	prb_auto_str struct prb_str name = {};

	if (!frame)
		return prb_error_nomem();
	PRB_TRY(prb_python_code(r->py, r->mem, link->frame.code, &frame->code));
	PRB_TRY(prb_python_location(r->py, r->mem, &link->frame, &frame->location));
	PRB_TRY(prb_coroutine_name(r, link->object, &name));
	frame->qualname = prb_str_take(&name);
	return frame->qualname ? NULL : prb_error_nomem();
}

/* True if a cancel scope that the task is in has a deadline; also if that is not known. */
static struct prb_error *is_limited(struct prb_repr *r, uint64_t task, bool *ret)
{
	uint64_t status, scope, deadline, bits;

	*ret = true;
	PRB_TRY(find(r, task, "_cancel_status", &status));
	for (unsigned i = 0; status && i < SCOPES_MAX; i++) {
		PRB_TRY(prb_repr_attribute(r, status, "_scope", &scope));
		PRB_TRY(prb_repr_attribute(r, scope, "_registered_deadline", &deadline));
		PRB_TRY(prb_repr_member(r, deadline, 0, &bits));
		if (bits != INFINITE)
			return NULL;
		PRB_TRY(find(r, status, "_parent", &status));
	}
	*ret = status != 0;
	return NULL;
}

/* In acquire(), `self` is the lock. One that was handed over to the task names it already. */
static struct prb_error *note_lock(struct prb_repr *r, struct prb_trio_task *task,
				   const struct prb_py_frame *frame)
{
	const struct prb_py_code *code = &task->frames.items[task->frames.count - 1].code;
	uint64_t lock, owner;

	if (task->lock || strcmp(code->name, "acquire") != 0 ||
	    !prb_text_ends(code->file, "/trio/_sync.py"))
		return NULL;
	PRB_TRY(prb_python_first_value(r->py, r->mem, frame, &lock));
	PRB_TRY(find(r, lock, "_owner", &owner));
	if (owner && owner != task->address) {
		task->lock = lock;
		task->owner = owner;
		task->limited = true;
		return prb_error_tolerate(is_limited(r, task->address, &task->limited), NULL);
	}
	return NULL;
}

static struct prb_error *read_stack(struct prb_repr *r, struct prb_trio_task *task, uint64_t coro)
{
	struct prb_await_chain chain;
	struct prb_error *err = prb_await_chain_read(r, coro, &chain);

	for (size_t i = chain.list.count; i-- > 0 && !err;) {
		task->running |= chain.list.items[i].state == PRB_COROUTINE_RUNNING;
		if (chain.list.items[i].state == PRB_COROUTINE_FINISHED)
			continue;
		err = add_frame(r, task, &chain.list.items[i]);
		if (!err)
			err = prb_error_tolerate(note_lock(r, task, &chain.list.items[i].frame),
						 NULL);
	}
	prb_await_chain_deinit(&chain);
	return err;
}

static struct prb_error *read_task(struct prb_repr *r, struct prb_trio_task *task)
{
	prb_auto_str struct prb_str name = {};
	uint64_t found, nursery;

	PRB_TRY(prb_repr_attribute(r, task->address, "name", &found));
	PRB_TRY(prb_repr_text(r, found, NAME_CHARACTERS, &name));
	PRB_TRY(prb_str_copy(prb_str_text(&name), &task->name));
	PRB_TRY(find(r, task->address, "_parent_nursery", &nursery));
	if (nursery)
		PRB_TRY(find(r, nursery, "_parent_task", &task->parent));
	PRB_TRY(prb_repr_attribute(r, task->address, "coro", &found));
	return read_stack(r, task, found);
}

static bool visit(void *context, uint64_t object)
{
	struct reading *reading = context;
	struct prb_trio_task *task = prb_vec_push(&reading->tasks->list);

	if (!task) {
		reading->err = prb_error_nomem();
		return false;
	}
	task->address = object;
	reading->err = read_task(reading->r, task);
	return !reading->err && reading->tasks->list.count < TASKS_MAX;
}

struct prb_error *prb_trio_read(struct prb_python *py, struct prb_mem *mem, uint64_t tasks,
				struct prb_trio_tasks *ret)
{
	prb_auto_str struct prb_str unused = {};
	prb_auto_repr struct prb_repr r;
	struct reading reading = {.r = &r, .tasks = ret};
	struct prb_error *err;

	*ret = (struct prb_trio_tasks){};
	prb_repr_init(&r, py, mem, NULL, &unused);
	err = prb_repr_set_each(&r, tasks, visit, &reading);
	if (!reading.err)
		return err;
	prb_error_destroy(err);
	return reading.err;
}

void prb_trio_deinit(struct prb_trio_tasks *tasks)
{
	struct prb_trio_task *task;
	struct prb_trio_frame *frame;

	prb_vec_each (task, &tasks->list) {
		prb_vec_each (frame, &task->frames) {
			prb_py_code_deinit(&frame->code);
			free(frame->qualname);
		}
		prb_vec_free(&task->frames);
		free(task->name);
	}
	prb_vec_free(&tasks->list);
}

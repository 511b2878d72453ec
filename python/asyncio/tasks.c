/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading all tasks: found first, then read one by one, then related to each other. */
#include "python/asyncio/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/asyncio/private.h"

const char *prb_asyncio_task_state_name(enum prb_asyncio_task_state state)
{
	static const char *const names[] = {
		[PRB_PY_TASK_PENDING] = "pending",     [PRB_PY_TASK_RUNNING] = "running",
		[PRB_PY_TASK_CANCELLED] = "cancelled", [PRB_PY_TASK_DONE] = "done",
		[PRB_PY_TASK_FAILED] = "failed",       [PRB_PY_TASK_UNKNOWN] = "unknown",
	};

	return names[state];
}

bool prb_asyncio_tolerate(struct prb_error **err, char **text)
{
	struct prb_error *e = *err;

	if (!e || (e->code != PRB_ERROR_FAULT && e->code != PRB_ERROR_BAD_DATA &&
		   e->code != PRB_ERROR_NOT_FOUND))
		return false;

	char *message = strdup(e->message);

	if (!message) {
		prb_error_destroy(e);
		*err = prb_error_nomem();
		return false;
	}
	if (*text)
		free(message); /* the first reason explains the others */
	else
		*text = message;
	prb_error_destroy(e);
	*err = NULL;
	return true;
}

static const struct prb_py_thread *find_thread(struct prb_asyncio_reader *t, uint64_t interp,
					       uint64_t pthread)
{
	const struct prb_py_thread *thread;

	prb_vec_each (thread, &t->threads->list)
		if (thread->interp == interp && thread->pthread == pthread)
			return thread;
	return NULL;
}

/* The thread that a loop is noted in as the one it runs: 3.13 and later. */
static const struct prb_py_thread *find_runner(struct prb_asyncio_reader *t, uint64_t loop)
{
	const struct prb_py_thread *thread;
	uint64_t running;

	if (t->layout.thread_running_loop <= 0)
		return NULL;
	prb_vec_each (thread, &t->threads->list) {
		prb_auto_error struct prb_error *err = prb_repr_word(
			&t->r, thread->address + (uint64_t)t->layout.thread_running_loop, &running);

		if (!err && running == loop)
			return thread;
	}
	return NULL;
}

/* A loop notes the number of its thread while it runs; loops of other makers may not. */
static struct prb_error *read_loop(struct prb_asyncio_reader *t, uint64_t interp, uint64_t loop,
				   struct prb_asyncio_task_loop *ret)
{
	const struct prb_py_thread *thread = NULL;
	uint64_t value;
	int64_t pthread;
	struct prb_error *err = prb_repr_attribute(&t->r, loop, "_thread_id", &value);

	*ret = (struct prb_asyncio_task_loop){.address = loop};
	if (!err && !prb_repr_is_none(&t->r, value)) {
		err = prb_repr_int(&t->r, value, &pthread);
		if (!err)
			thread = find_thread(t, interp, (uint64_t)pthread);
	}
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		thread = find_runner(t, loop);
	if (thread) {
		ret->thread = thread->address;
		ret->tid = thread->tid;
	}
	return err;
}

static struct prb_error *set_loop(struct prb_asyncio_reader *t, struct prb_asyncio_task *task)
{
	struct prb_asyncio_task_loop *loop, new;

	if (!task->loop)
		return NULL;
	prb_vec_each (loop, &t->loops)
		if (loop->address == task->loop)
			break;
	if (!t->loops.count || loop == t->loops.items + t->loops.count) {
		PRB_TRY(read_loop(t, task->interp, task->loop, &new));
		loop = prb_vec_push(&t->loops);
		if (!loop)
			return prb_error_nomem();
		*loop = new;
	}
	task->thread = loop->thread;
	task->tid = loop->tid;
	return NULL;
}

static bool is_current(const struct prb_asyncio_reader *t, uint64_t address)
{
	const uint64_t *running;

	prb_vec_each (running, &t->running)
		if (*running == address)
			return true;
	return false;
}

static struct prb_error *set_state(struct prb_asyncio_reader *t, const struct prb_future *future,
				   struct prb_asyncio_task *task)
{
	enum prb_future_state state;
	uint64_t exception;

	PRB_TRY(prb_future_state(t, future, &state));
	switch (state) {
	case PRB_FUTURE_PENDING:
		task->state =
			is_current(t, task->address) ? PRB_PY_TASK_RUNNING : PRB_PY_TASK_PENDING;
		return NULL;
	case PRB_FUTURE_CANCELLED:
		task->state = PRB_PY_TASK_CANCELLED;
		return NULL;
	case PRB_FUTURE_FINISHED:
		break;
	}
	PRB_TRY(prb_future_exception(t, future, &exception));
	task->state = exception ? PRB_PY_TASK_FAILED : PRB_PY_TASK_DONE;
	return NULL;
}

static struct prb_error *not_a_task(struct prb_asyncio_reader *t, uint64_t object)
{
	prb_auto_str struct prb_str type = {};

	PRB_TRY(prb_object_type_name(t->r.py, t->r.mem, object, &type));
	return prb_error_create(PRB_ERROR_BAD_DATA, "a %s, which is not a task of asyncio",
				prb_str_text(&type));
}

static struct prb_error *read_task(struct prb_asyncio_reader *t, struct prb_asyncio_task *task)
{
	prb_auto_str struct prb_str name = {};
	struct prb_future future;
	uint64_t coro;

	PRB_TRY(prb_future_open(t, task->address, &future));
	if (future.kind == PRB_FUTURE_NONE || !future.is_task)
		return not_a_task(t, task->address);
	PRB_TRY(set_state(t, &future, task));
	PRB_TRY(prb_asyncio_task_name(t, &future, &task->name));
	PRB_TRY(prb_future_loop(t, &future, &task->loop));
	PRB_TRY(set_loop(t, task));
	if (task->state != PRB_PY_TASK_PENDING && task->state != PRB_PY_TASK_RUNNING)
		return NULL;
	PRB_TRY(prb_asyncio_waiter(t, &future, &task->future));
	PRB_TRY(prb_asyncio_task_coro(t, &future, &coro));
	if (!coro)
		return prb_repr_bad(task->address,
				    "a task that has not ended, without a coroutine");
	PRB_TRY(prb_coroutine_name(&t->r, coro, &name));
	task->coro = prb_str_take(&name);
	if (!task->coro)
		return prb_error_nomem();
	return prb_asyncio_task_read_frames(t, task, coro);
}

static struct prb_error *read_all(struct prb_asyncio_reader *t)
{
	struct prb_asyncio_task *task;

	PRB_TRY(prb_asyncio_find_all(t));
	prb_vec_each (task, &t->tasks->list) {
		t->r.walked = 0;

		struct prb_error *err = read_task(t, task);

		prb_asyncio_tolerate(&err, &task->error);
		PRB_TRY(err);
	}
	if (!t->tasks->list.count)
		return NULL;
	PRB_TRY(prb_asyncio_relate(t));
	prb_vec_each (task, &t->tasks->list) {
		t->r.walked = 0;

		struct prb_error *err = prb_asyncio_task_describe_wait(t, task);

		prb_asyncio_tolerate(&err, &task->error);
		PRB_TRY(err);
	}
	return prb_asyncio_tell_holders(t);
}

struct prb_error *prb_asyncio_tasks_read(struct prb_python *py, struct prb_modules *modules,
					 struct prb_mem *mem, const struct prb_py_threads *threads,
					 bool values, struct prb_asyncio_tasks *ret)
{
	struct prb_asyncio_reader t = {
		.modules = modules, .threads = threads, .values = values, .tasks = ret};

	*ret = (struct prb_asyncio_tasks){};
	if (!py->layout.behaviour->asyncio)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"asyncio tasks are read from Python 3.7 on, this is %s",
					py->version);
	prb_repr_init(&t.r, py, mem, NULL, NULL);

	struct prb_error *err = read_all(&t);

	prb_repr_deinit(&t.r);
	prb_vec_free(&t.loops);
	prb_vec_free(&t.running);
	prb_number_map_deinit(&t.plain);
	if (err)
		prb_asyncio_tasks_deinit(ret);
	return err;
}

void prb_asyncio_task_forget(struct prb_asyncio_task *task)
{
	struct prb_asyncio_task_frame *frame;

	prb_vec_each (frame, &task->frames)
		free(frame->qualname);
	prb_vec_free(&task->frames);
	free(task->waits_for);
	task->waits_for = NULL;
	task->waits_kind = NULL;
	task->wakes_at = 0;
	task->waits_on = 0;
	task->holder = 0;
	task->limited = false;
}

static void task_deinit(struct prb_asyncio_task *task)
{
	prb_asyncio_task_forget(task);
	prb_vec_free(&task->children);
	prb_vec_free(&task->awaiters);
	free(task->name);
	free(task->coro);
	free(task->error);
}

void prb_asyncio_tasks_deinit(struct prb_asyncio_tasks *tasks)
{
	struct prb_asyncio_task *task;
	struct prb_py_code **code;

	prb_vec_each (task, &tasks->list)
		task_deinit(task);
	prb_vec_free(&tasks->list);
	prb_vec_each (code, &tasks->codes) {
		prb_py_code_deinit(*code);
		free(*code);
	}
	prb_vec_free(&tasks->codes);
	prb_number_map_deinit(&tasks->by_address);
	prb_number_map_deinit(&tasks->code_by_address);
	free(tasks->error);
	*tasks = (struct prb_asyncio_tasks){};
}

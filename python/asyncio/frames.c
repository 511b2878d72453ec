/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The frames of a task: its chain of awaits, and the thread's stack where it runs. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/asyncio/private.h"

/* Code objects are shared by most tasks of a program, so each is read once. */
static struct prb_error *find_code(struct prb_asyncio_reader *t, uint64_t address,
				   const struct prb_py_code **ret)
{
	struct prb_asyncio_tasks *tasks = t->tasks;
	struct prb_py_code **slot, *code;
	size_t index;

	if (prb_number_map_get(&tasks->code_by_address, address, &index)) {
		*ret = tasks->codes.items[index];
		return NULL;
	}
	code = calloc(1, sizeof(*code));
	slot = code ? prb_vec_push(&tasks->codes) : NULL;
	if (!slot) {
		free(code);
		return prb_error_nomem();
	}
	*slot = code;

	struct prb_error *err = prb_python_code(t->r.py, t->r.mem, address, code);

	if (err) {
		tasks->codes.count--;
		free(code);
		return err;
	}
	*ret = code;
	return prb_number_map_put(&tasks->code_by_address, address, tasks->codes.count - 1)
		       ? NULL
		       : prb_error_nomem();
}

static struct prb_error *find_name(struct prb_asyncio_reader *t,
				   struct prb_asyncio_task_frame *frame)
{
	prb_auto_str struct prb_str name = {};

	if (frame->coroutine) {
		PRB_TRY(prb_coroutine_name(&t->r, frame->coroutine, &name));
		frame->qualname = prb_str_take(&name);
	} else if (frame->code->qualname) {
		frame->qualname = strdup(frame->code->qualname);
	} else {
		return prb_python_qualname(t->r.py, t->r.mem, &frame->frame, frame->code,
					   &frame->qualname);
	}
	return frame->qualname ? NULL : prb_error_nomem();
}

static struct prb_error *add_frame(struct prb_asyncio_reader *t, struct prb_asyncio_task *task,
				   const struct prb_py_frame *frame, uint64_t coroutine,
				   bool started)
{
	struct prb_asyncio_task_frame *slot = prb_vec_push(&task->frames);

	if (!slot)
		return prb_error_nomem();
	slot->frame = *frame;
	slot->coroutine = coroutine;
	slot->started = started;
	slot->location = (struct prb_py_location){-1, -1, -1, -1};
	PRB_TRY(find_code(t, frame->code, &slot->code));
	PRB_TRY(prb_python_location(t->r.py, t->r.mem, frame, &slot->location));
	return find_name(t, slot);
}

/* The coroutine that a frame on a thread's stack belongs to; 0 if it is none, or not known. */
static uint64_t coroutine_of(const struct prb_asyncio_reader *t,
			     const struct prb_await_chain *chain, const struct prb_py_frame *frame)
{
	const struct prb_layout *l = t->r.layout;
	const struct prb_coroutine *link;

	if (l->behaviour->owner_generator >= 0)
		return frame->owner == l->behaviour->owner_generator
			       ? frame->address - (uint64_t)l->generator_frame
			       : 0;
	prb_vec_each (link, &chain->list)
		if (link->frame.address == frame->address)
			return link->object;
	return 0;
}

/* From the task's own coroutine to the innermost frame of the thread that runs it. */
static struct prb_error *add_stack(struct prb_asyncio_reader *t, struct prb_asyncio_task *task,
				   const struct prb_await_chain *chain,
				   const struct prb_py_frames *stack)
{
	size_t own = stack->list.count;

	for (size_t i = 0; i < stack->list.count; i++)
		if (stack->list.items[i].address == chain->list.items[0].frame.address)
			own = i;
	if (own == stack->list.count)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"it ran on while it was read: it is not on the stack of "
					"its thread");
	for (size_t i = own + 1; i-- > 0;) {
		const struct prb_py_frame *frame = &stack->list.items[i];

		if (!frame->hidden)
			PRB_TRY(add_frame(t, task, frame, coroutine_of(t, chain, frame), true));
	}
	return NULL;
}

static struct prb_error *add_running(struct prb_asyncio_reader *t, struct prb_asyncio_task *task,
				     const struct prb_await_chain *chain)
{
	struct prb_py_frames stack;

	if (!task->thread)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"it runs in a thread that could not be found out");

	struct prb_error *err = prb_python_frames(t->r.py, t->r.mem, task->thread, &stack);

	if (!err)
		err = add_stack(t, task, chain, &stack);
	prb_py_frames_deinit(&stack);
	return err;
}

static bool runs(const struct prb_await_chain *chain)
{
	const struct prb_coroutine *link;

	prb_vec_each (link, &chain->list)
		if (link->state == PRB_COROUTINE_RUNNING)
			return true;
	return false;
}

/* A waiting task waits for the future that its innermost coroutine awaits. */
static struct prb_error *check_end(struct prb_asyncio_reader *t,
				   const struct prb_asyncio_task *task, uint64_t end)
{
	struct prb_future future;

	if (!end || !task->future || end == task->future)
		return NULL;
	PRB_TRY(prb_future_open(t, end, &future));
	if (future.kind == PRB_FUTURE_NONE)
		return NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA,
				"it ran on while it was read: its frames and what it waits for "
				"do not belong together");
}

static struct prb_error *add_chain(struct prb_asyncio_reader *t, struct prb_asyncio_task *task,
				   const struct prb_await_chain *chain)
{
	const struct prb_coroutine *link;

	if (runs(chain)) {
		if (task->state == PRB_PY_TASK_RUNNING)
			return add_running(t, task, chain);
		return prb_error_create(PRB_ERROR_BAD_DATA, "it began to run while it was read");
	}
	PRB_TRY(check_end(t, task, chain->end));
	prb_vec_each (link, &chain->list)
		PRB_TRY(add_frame(t, task, &link->frame, link->object,
				  link->state != PRB_COROUTINE_CREATED));
	return NULL;
}

struct prb_error *prb_asyncio_task_read_frames(struct prb_asyncio_reader *t,
					       struct prb_asyncio_task *task, uint64_t object)
{
	struct prb_await_chain chain;
	struct prb_error *err = prb_await_chain_read(&t->r, object, &chain);

	if (!err)
		err = add_chain(t, task, &chain);
	prb_await_chain_deinit(&chain);
	return err;
}

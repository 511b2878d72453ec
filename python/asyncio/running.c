/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/asyncio/running.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/asyncio/private.h"

enum {
	MOST_TASKS = 64,      /* of a chain */
	MOST_AWAITERS = 16,   /* that are told apart of one task */
	NEST_MAX = 16,	      /* futures that complete futures */
	MOST_CALLBACKS = 256, /* a thread may be stopped meanwhile */
};

/* An interpreter that has imported asyncio. */
struct place {
	uint64_t interp;
	uint64_t current; /* dict of current tasks; 0: none */
};

struct prb_asyncio_watch {
	struct prb_asyncio_reader t;
	bool begun; /* t.r is there */
	PRB_VEC(struct place) places;
};

/* The waiters of a future. */
struct awaiting {
	struct prb_asyncio_reader *t;
	uint64_t future; /* whose callbacks are looked at */
	uint64_t tasks[MOST_AWAITERS];
	unsigned count, depth, callbacks;
};

struct prb_error *prb_asyncio_watch_create(struct prb_python *py, struct prb_modules *modules,
					   struct prb_asyncio_watch **ret)
{
	struct prb_asyncio_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return prb_error_nomem();
	watch->t.r.py = py;
	watch->t.modules = modules;
	*ret = watch;
	return NULL;
}

static void forget(struct prb_asyncio_watch *watch)
{
	if (watch->begun)
		prb_repr_deinit(&watch->t.r);
	watch->begun = false;
	prb_vec_free(&watch->t.running);
	watch->places.count = 0;
}

void prb_asyncio_watch_destroy(struct prb_asyncio_watch *watch)
{
	if (!watch)
		return;
	forget(watch);
	prb_vec_free(&watch->places);
	free(watch);
}

/* Also where nothing of it can be read, samples go on. */
static struct prb_error *tolerate(struct prb_error *err)
{
	if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
		return err;
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *add_place(struct prb_asyncio_watch *watch, uint64_t interp)
{
	struct place place = {.interp = interp}, *slot;

	PRB_TRY(prb_asyncio_find_current(&watch->t, interp, &place.current));
	slot = prb_vec_push(&watch->places);
	if (!slot)
		return prb_error_nomem();
	*slot = place;
	return NULL;
}

struct prb_error *prb_asyncio_watch_refresh(struct prb_asyncio_watch *watch, struct prb_mem *mem)
{
	struct prb_python *py = watch->t.r.py;
	const struct prb_interp *interp;
	struct prb_py_threads threads = {};
	struct prb_error *err;

	forget(watch);
	if (!py->layout.behaviour->asyncio)
		return NULL;
	prb_repr_init(&watch->t.r, py, mem, NULL, NULL);
	watch->begun = true;
	err = prb_python_threads(py, mem, &threads);
	for (size_t i = 0; !err && i < threads.interps.count; i++) {
		interp = &threads.interps.items[i];
		err = tolerate(add_place(watch, interp->address));
	}
	prb_py_threads_deinit(&threads);
	return tolerate(err);
}

static struct prb_error *add_awaiter(struct awaiting *a, uint64_t task)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->tasks[i] == task)
			return NULL;
	if (a->count < MOST_AWAITERS)
		a->tasks[a->count++] = task;
	return NULL;
}

static struct prb_error *search(struct awaiting *a, const struct prb_future *future);

/* A task that waits has said for what: a callback may do anything with other tasks. */
static struct prb_error *visit_held(void *context, uint64_t object)
{
	struct awaiting *a = context;
	struct prb_future future;
	uint64_t waiter;

	PRB_TRY(prb_future_open(a->t, object, &future));
	if (future.kind == PRB_FUTURE_NONE) {
		PRB_TRY(prb_asyncio_group_parent(a->t, object, &waiter));
		return waiter ? add_awaiter(a, waiter) : NULL;
	}
	if (!future.is_task)
		return search(a, &future);
	PRB_TRY(prb_asyncio_waiter(a->t, &future, &waiter));
	return waiter == a->future ? add_awaiter(a, object) : NULL;
}

static struct prb_error *visit_callback(void *context, uint64_t callback)
{
	struct awaiting *a = context;
	struct prb_type *type;
	uint64_t task;

	if (++a->callbacks > MOST_CALLBACKS)
		return prb_error_create(PRB_ERROR_BAD_DATA, "too many callbacks");
	PRB_TRY(prb_repr_type_of(&a->t->r, callback, &type));
	/* The wake-up callback of a task of the extension module is bound to the task. */
	if (prb_type_is(type, "builtin_function_or_method")) {
		PRB_TRY(prb_repr_member(&a->t->r, callback, 1, &task));
		return task ? visit_held(a, task) : NULL;
	}
	if (prb_type_is(type, "TaskWakeupMethWrapper")) {
		PRB_TRY(prb_repr_member(&a->t->r, callback, 0, &task));
		return visit_held(a, task);
	}
	return prb_callback_each(a->t, callback, visit_held, a);
}

static struct prb_error *visit_awaited_by(void *context, uint64_t object)
{
	struct awaiting *a = context;
	struct prb_future future;

	PRB_TRY(prb_future_open(a->t, object, &future));
	return future.is_task ? add_awaiter(a, object) : NULL;
}

static struct prb_error *search(struct awaiting *a, const struct prb_future *future)
{
	uint64_t before = a->future;
	struct prb_error *err;

	if (a->depth >= NEST_MAX)
		return NULL;
	a->depth++;
	a->future = future->address;
	err = prb_future_awaited_by(a->t, future, visit_awaited_by, a);
	if (!err)
		err = prb_future_callbacks(a->t, future, visit_callback, a);
	a->future = before;
	a->depth--;
	return err;
}

/* "Task-17" is no name that says anything, and each task has another one. */
static bool is_made_up(const char *name)
{
	const char *at = name;

	if (strncmp(at, "Task-", 5) != 0)
		return false;
	for (at += 5; isdigit((unsigned char)*at); at++)
		;
	return !*at;
}

static struct prb_error *push(struct prb_asyncio_reader *t, const struct prb_future *task,
			      struct prb_asyncio_running *ret)
{
	struct prb_asyncio_link *link = prb_vec_push(&ret->tasks);

	if (!link)
		return prb_error_nomem();
	*link = (struct prb_asyncio_link){.first = ret->frames.count};
	PRB_TRY(tolerate(prb_asyncio_task_name(t, task, &link->name)));
	if (link->name && is_made_up(link->name))
		free(prb_steal(&link->name));
	return NULL;
}

static struct prb_error *push_frames(struct prb_asyncio_running *ret,
				     const struct prb_await_chain *chain)
{
	struct prb_asyncio_link *link = &ret->tasks.items[ret->tasks.count - 1];

	for (size_t i = chain->list.count; i-- > 0;) {
		const struct prb_coroutine *coroutine = &chain->list.items[i];
		struct prb_py_frame *slot;

		if (coroutine->frame.hidden || coroutine->state == PRB_COROUTINE_CREATED)
			continue;
		slot = prb_vec_push(&ret->frames);
		if (!slot)
			return prb_error_nomem();
		*slot = coroutine->frame;
		link->count++;
	}
	return NULL;
}

static struct prb_error *open_task(struct prb_asyncio_reader *t, uint64_t address,
				   struct prb_future *ret, uint64_t *ret_coro)
{
	PRB_TRY(prb_future_open(t, address, ret));
	if (ret->kind == PRB_FUTURE_NONE || !ret->is_task)
		return prb_error_create(PRB_ERROR_BAD_DATA, "no task");
	PRB_TRY(prb_asyncio_task_coro(t, ret, ret_coro));
	return *ret_coro ? NULL
			 : prb_error_create(PRB_ERROR_BAD_DATA, "a task without a coroutine");
}

/* The task that waits, with its own frames. */
static struct prb_error *add_waiting(struct prb_asyncio_reader *t, uint64_t address,
				     struct prb_future *task, struct prb_asyncio_running *ret)
{
	struct prb_await_chain chain = {};
	struct prb_error *err;
	uint64_t coro;

	PRB_TRY(open_task(t, address, task, &coro));
	err = prb_await_chain_read(&t->r, coro, &chain);
	if (!err)
		err = push(t, task, ret);
	if (!err)
		err = push_frames(ret, &chain);
	prb_await_chain_deinit(&chain);
	return err;
}

static struct prb_error *climb(struct prb_asyncio_reader *t, struct prb_future task,
			       struct prb_asyncio_running *ret)
{
	while (ret->tasks.count < MOST_TASKS) {
		struct awaiting a = {.t = t};

		t->r.walked = 0;
		PRB_TRY(search(&a, &task));
		if (a.count > 1)
			ret->awaiters = a.count;
		if (a.count != 1)
			return NULL;
		PRB_TRY(add_waiting(t, a.tasks[0], &task, ret));
	}
	return prb_error_create(PRB_ERROR_BAD_DATA, "too many tasks wait for each other");
}

/* Whether it is the one that this thread runs. */
static struct prb_error *try_task(struct prb_asyncio_reader *t, uint64_t address,
				  prb_asyncio_on_stack *on_stack, void *context,
				  struct prb_asyncio_running *ret)
{
	struct prb_await_chain chain = {};
	struct prb_future task;
	struct prb_error *err;
	uint64_t coro;

	PRB_TRY(open_task(t, address, &task, &coro));
	err = prb_await_chain_read(&t->r, coro, &chain);
	if (!err && chain.list.count && on_stack(context, chain.list.items[0].frame.address)) {
		ret->frame = chain.list.items[0].frame.address;
		err = push(t, &task, ret);
	}
	prb_await_chain_deinit(&chain);
	PRB_TRY(err);
	if (!ret->tasks.count)
		return NULL;
	err = climb(t, task, ret);
	ret->broken = err;
	return tolerate(err);
}

static const struct place *place_of(const struct prb_asyncio_watch *watch, uint64_t interp)
{
	const struct place *place;

	prb_vec_each (place, &watch->places)
		if (place->interp == interp)
			return place;
	return NULL;
}

struct prb_error *prb_asyncio_running_read(struct prb_asyncio_watch *watch, struct prb_mem *mem,
					   const struct prb_py_thread *thread,
					   prb_asyncio_on_stack *on_stack, void *context,
					   struct prb_asyncio_running *ret)
{
	struct prb_asyncio_reader *t = &watch->t;
	const struct place *place = place_of(watch, thread->interp);
	const uint64_t *task;

	*ret = (struct prb_asyncio_running){};
	if (!place)
		return NULL;
	t->r.mem = mem;
	t->r.walked = 0;
	t->running.count = 0;
	PRB_TRY(tolerate(prb_asyncio_read_current(t, thread->address, place->current)));
	prb_vec_each (task, &t->running) {
		PRB_TRY(tolerate(try_task(t, *task, on_stack, context, ret)));
		if (ret->tasks.count)
			break;
	}
	return NULL;
}

void prb_asyncio_running_deinit(struct prb_asyncio_running *running)
{
	struct prb_asyncio_link *link;

	prb_vec_each (link, &running->tasks)
		free(link->name);
	prb_vec_free(&running->tasks);
	prb_vec_free(&running->frames);
	*running = (struct prb_asyncio_running){};
}

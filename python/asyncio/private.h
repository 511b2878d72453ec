/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the files that read tasks: the state of one reading, and futures as they lie in
 * memory. A future is one of the extension module or of its twin in Python; tasks are futures.
 * Internal to python/asyncio/.
 */
#ifndef PRB_PYTHON_ASYNCIO_PRIVATE_H
#define PRB_PYTHON_ASYNCIO_PRIVATE_H

#include "base/map.h"
#include "python/asyncio/layout.h"
#include "python/repr/builtin/coroutine.h"
#include "python/repr/core/repr_private.h"
#include "python/asyncio/tasks.h"

/** An event loop that was met. */
struct prb_asyncio_task_loop {
	uint64_t address, thread;
	pid_t tid;
};

struct prb_asyncio_reader {
	struct prb_repr r;
	struct prb_modules *modules;
	const struct prb_py_threads *threads;
	bool values; /**< variables may be read */
	struct prb_asyncio_layout layout;
	struct prb_asyncio_tasks *tasks;
	PRB_VEC(struct prb_asyncio_task_loop) loops;
	PRB_VEC(uint64_t) running; /**< addresses of current tasks */
	/** Futures that are chained to no pool: thousands of tasks may wait for one, each of
	 * which is a callback of it. */
	struct prb_number_map plain;
};

enum prb_future_kind {
	PRB_FUTURE_NONE, /**< another object */
	PRB_FUTURE_C,	 /**< of _asyncio */
	PRB_FUTURE_PYTHON,
};

enum prb_future_state { PRB_FUTURE_PENDING, PRB_FUTURE_CANCELLED, PRB_FUTURE_FINISHED };

struct prb_future {
	uint64_t address;
	enum prb_future_kind kind;
	bool is_task;
};

/* future.c */
/** Says what kind of future @p object is; PRB_FUTURE_NONE also for what cannot be read. */
struct prb_error *prb_future_open(struct prb_asyncio_reader *t, uint64_t object,
				  struct prb_future *ret) PRB_MUST_CHECK;
struct prb_error *prb_future_state(struct prb_asyncio_reader *t, const struct prb_future *future,
				   enum prb_future_state *ret) PRB_MUST_CHECK;
/** Members; 0 where there is none or None. */
struct prb_error *prb_future_loop(struct prb_asyncio_reader *t, const struct prb_future *future,
				  uint64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_future_exception(struct prb_asyncio_reader *t,
				       const struct prb_future *future,
				       uint64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_asyncio_waiter(struct prb_asyncio_reader *t, const struct prb_future *task,
				     uint64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_asyncio_task_coro(struct prb_asyncio_reader *t, const struct prb_future *task,
					uint64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_asyncio_task_name(struct prb_asyncio_reader *t, const struct prb_future *task,
					char **ret) PRB_MUST_CHECK;
typedef struct prb_error *prb_object_visit(void *context, uint64_t object);
/** Calls @p visit for each done-callback. */
struct prb_error *prb_future_callbacks(struct prb_asyncio_reader *t,
				       const struct prb_future *future, prb_object_visit *visit,
				       void *context) PRB_MUST_CHECK;
/** Calls @p visit for each task or future that 3.14+ has noted as waiting for this one. */
struct prb_error *prb_future_awaited_by(struct prb_asyncio_reader *t,
					const struct prb_future *future, prb_object_visit *visit,
					void *context) PRB_MUST_CHECK;
/** Items of a list or tuple, at most PRB_TASK_ITEMS_MAX. */
enum { PRB_TASK_ITEMS_MAX = 1 << 20 };
struct prb_error *prb_sequence_each(struct prb_asyncio_reader *t, uint64_t object,
				    prb_object_visit *visit, void *context) PRB_MUST_CHECK;

/* find.c */
/** Fills tasks->list with address and interpreter, and t->running. */
struct prb_error *prb_asyncio_find_all(struct prb_asyncio_reader *t) PRB_MUST_CHECK;

/** Where an interpreter keeps the current tasks of its loops, a dict; 0 if it has none such, as
 * from 3.14 on. Loads the layout. PRB_ERROR_NOT_FOUND where asyncio was not imported. */
struct prb_error *prb_asyncio_find_current(struct prb_asyncio_reader *t, uint64_t interp,
					   uint64_t *ret) PRB_MUST_CHECK;
/** Appends to t->running what the thread state and that dict say. */
struct prb_error *prb_asyncio_read_current(struct prb_asyncio_reader *t, uint64_t thread,
					   uint64_t dict) PRB_MUST_CHECK;

/* frames.c */
/** Fills the frames of @p task; @p object is its coroutine. */
struct prb_error *prb_asyncio_task_read_frames(struct prb_asyncio_reader *t,
					       struct prb_asyncio_task *task,
					       uint64_t object) PRB_MUST_CHECK;

/* relations.c */
/** Fills children and awaiters of all tasks, which have been read. */
struct prb_error *prb_asyncio_relate(struct prb_asyncio_reader *t) PRB_MUST_CHECK;
/** The task that a TaskGroup is of; 0 if @p object is none. */
struct prb_error *prb_asyncio_group_parent(struct prb_asyncio_reader *t, uint64_t object,
					   uint64_t *ret) PRB_MUST_CHECK;
/** The task of this address in the list; false if there is none. */
bool prb_asyncio_index(const struct prb_asyncio_reader *t, uint64_t address, size_t *ret);
/** Calls @p visit for what a done-callback holds: bound arguments, cells, the object it is bound
 * to. */
struct prb_error *prb_callback_each(struct prb_asyncio_reader *t, uint64_t callback,
				    prb_object_visit *visit, void *context) PRB_MUST_CHECK;

/* waits.c */
/** Says what a task that waits is waiting for. */
struct prb_error *prb_asyncio_task_describe_wait(struct prb_asyncio_reader *t,
						 struct prb_asyncio_task *task) PRB_MUST_CHECK;

/* holders.c */
/** Where a task waits for a lock, adds which task holds it. */
struct prb_error *prb_asyncio_tell_holders(struct prb_asyncio_reader *t) PRB_MUST_CHECK;

/** True, and *err ended and NULL, if it is about data that makes no sense: noted in @p text. */
bool prb_asyncio_tolerate(struct prb_error **err, char **text);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The asyncio tasks of a target (CPython 3.7+): what each is doing, what it waits for, and
 * which tasks wait for it. No code runs in the target.
 *
 * All tasks that asyncio itself knows of are found: in its registries, of all interpreters and
 * event loops. Up to 3.13 these still have tasks that are done, as long as something holds them;
 * from 3.14 on a task leaves its registry when it is done.
 *
 * The memory that is passed should be a view of one instant (view.h). Tasks of a live process
 * change while they are read: inconsistent data is not shown but reported, task by task, in
 * `error`.
 *
 * Threading: one thread at a time. Strings belong to the result.
 */
#ifndef PRB_PYTHON_ASYNCIO_TASKS_H
#define PRB_PYTHON_ASYNCIO_TASKS_H

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "python/python.h"
#include "dwarf/elf/module.h"
#include "target/mem/mem.h"

enum prb_asyncio_task_state {
	PRB_PY_TASK_PENDING, /**< waits, or is about to run */
	PRB_PY_TASK_RUNNING, /**< is the current task of its loop */
	PRB_PY_TASK_CANCELLED,
	PRB_PY_TASK_DONE,
	PRB_PY_TASK_FAILED, /**< ended by an exception */
	PRB_PY_TASK_UNKNOWN,
};

/** "pending", "running", … */
const char *prb_asyncio_task_state_name(enum prb_asyncio_task_state state);

/** A frame of a task: of one of its coroutines, or (running) of a function these called. */
struct prb_asyncio_task_frame {
	struct prb_py_frame frame;
	const struct prb_py_code *code; /**< NULL if it could not be read */
	char *qualname;			/**< NULL if it cannot be known (functions before 3.11) */
	struct prb_py_location location;
	uint64_t coroutine; /**< the coroutine or generator; 0: a function that was called */
	bool started;	    /**< false for a coroutine that has not run yet */
};

struct prb_asyncio_task {
	uint64_t address;
	uint64_t interp;
	int64_t interp_id;
	enum prb_asyncio_task_state state;
	char *name;	 /**< NULL: it has none (3.7) */
	char *coro;	 /**< qualified name; NULL once it is done */
	uint64_t loop;	 /**< of the event loop; 0 if unknown */
	pid_t tid;	 /**< of the thread that runs the loop, as in `threads`; 0 if none does */
	uint64_t thread; /**< the thread state of that; 0 if unknown */

	PRB_VEC(struct prb_asyncio_task_frame) frames; /**< outermost first */

	uint64_t future;	/**< the task or future that it waits for; 0 if none */
	const char *waits_kind; /**< static: "task", "gather", "sleep", …; NULL: it does not wait */
	char *waits_for;	/**< in words; NULL: it does not wait */
	uint64_t waits_on;	/**< the lock or semaphore that it waits for; 0 if none */
	uint64_t holder;	/**< the task that holds that lock; 0 if it is not known */
	bool limited;		/**< if others wait for locks, or in a circle: it is inside of a
				     timeout() */
	double wakes_at;	/**< monotonic clock, seconds, at which a sleep ends; 0: none */
	PRB_VEC(size_t) children; /**< indices of the tasks that it waits for */
	PRB_VEC(size_t) awaiters; /**< indices of the tasks that wait for it */

	char *error; /**< what could not be read, and why; NULL if all was */
};

struct prb_asyncio_tasks {
	PRB_VEC(struct prb_asyncio_task) list;
	char *error; /**< why tasks may be missing from the list, or NULL */

	PRB_VEC(struct prb_py_code *) codes; /**< of the frames */
	struct prb_number_map by_address;    /**< tasks */
	struct prb_number_map code_by_address;
};

/**
 * Reads all tasks of a runtime; none if it has not imported asyncio. @p threads are what
 * prb_python_threads() gave; a tid in them (before 3.11 the caller's to find out) appears in the
 * tasks. Without @p values no variables of frames are read (they hold the length of a sleep and the
 * lock or descriptor). PRB_ERROR_UNSUPPORTED before 3.7.
 */
struct prb_error *prb_asyncio_tasks_read(struct prb_python *py, struct prb_modules *modules,
					 struct prb_mem *mem, const struct prb_py_threads *threads,
					 bool values, struct prb_asyncio_tasks *ret) PRB_MUST_CHECK;
void prb_asyncio_tasks_deinit(struct prb_asyncio_tasks *tasks);

enum { PRB_ASYNCIO_CIRCLE_MAX = 32 };
/**
 * Fills @p list with tasks, each of which awaits the next one alone, without a limit of time, and
 * the last one the first, which is @p first and has the least index. Returns their number, 0: none.
 */
size_t prb_asyncio_circle(const struct prb_asyncio_tasks *tasks, size_t first, size_t *list);

/** Takes back what was read of a task that changed meanwhile: frames and what it waits for. */
void prb_asyncio_task_forget(struct prb_asyncio_task *task);

#endif

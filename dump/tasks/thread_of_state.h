/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finds the thread that runs a thread state, by asking the threads.
 *
 * A thread state names the thread that made it (`thread_id`, `native_thread_id`). That is wrong
 * after a fork in C, and if another thread runs the state. So it is only a hint:
 *
 * 1. Each thread keeps its own state under CPython's `autoTSSkey` (from 3.15 on in the thread-local
 *    variables `_Py_tss_tstate` and `_Py_tss_gilstate`). Both lie in the thread's descriptor
 *    (`struct pthread`) or next to it, so they can be read while the thread runs.
 * 2. If no thread keeps the state, the C stack decides: from 3.10 on a running state points into
 *    the stack of its thread. Before, the stacks of sleeping threads are searched for the addresses
 *    of its frames.
 * 3. A state with frames that neither rule assigns to a thread has none.
 *
 * Descriptors are found by the hints and, if these do not suffice, in the C library's lists (glibc,
 * musl).
 *
 * Threading: one thread at a time. Borrows everything.
 */
#ifndef PRB_DUMP_TASKS_THREAD_OF_STATE_H
#define PRB_DUMP_TASKS_THREAD_OF_STATE_H

#include "base/error.h"
#include "base/vec.h"
#include "python/python.h"
#include "dwarf/elf/module.h"
#include "target/mem/view.h"
#include "dump/tasks/tasks.h"

/** A thread and its descriptor. */
struct prb_descriptor {
	uint64_t self; /**< address of struct pthread: pthread_self() */
	uint32_t tid_offset;
	struct prb_task_watch *task;
};

/** Starts as {.target = …, .modules = …, .tasks = …}. */
struct prb_thread_finder {
	struct prb_target *target;
	struct prb_modules *modules;
	struct prb_tasks *tasks;
	PRB_VEC(struct prb_descriptor) known;
	bool walked; /**< the C library's lists were read */
};

/** The result for one thread state. */
struct prb_found_thread {
	struct prb_task_watch *task; /**< the thread; NULL if unknown */
	uint64_t self;		     /**< its pthread_self(); 0 if unknown */
	uint64_t kept_at; /**< where that thread keeps the state; 0 if found by its stack or a hint
			   */
	bool has_frames;  /**< set only if no thread is known */
	bool orphan;	  /**< the same: the thread that made it has ended */
	const char *reason; /**< why no thread is known; static */
};

/** Fills @p ret, one element for each of @p states, through @p view. */
struct prb_error *prb_thread_finder_run(struct prb_thread_finder *finder, struct prb_python *py,
					struct prb_view *view, struct prb_py_threads *states,
					struct prb_found_thread *ret) PRB_MUST_CHECK;
/** As above, for one runtime: sets `tid` of each of @p states; 0 if it has no thread. */
struct prb_error *prb_find_tids(struct prb_modules *modules, struct prb_tasks *tasks,
				struct prb_python *py, struct prb_view *view,
				struct prb_py_threads *states) PRB_MUST_CHECK;

/** tid (in the target's pid namespace) of a pthread, for versions that do not store it; 0: none. */
pid_t prb_pthread_tid(struct prb_mem *mem, struct prb_tasks *tasks, uint64_t pthread);

/** As above, and the offset of the tid in the thread's descriptor. */
pid_t prb_pthread_tid_at(struct prb_mem *mem, struct prb_tasks *tasks, uint64_t pthread,
			 uint32_t *ret_offset);

void prb_thread_finder_deinit(struct prb_thread_finder *finder);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The asyncio task that a thread runs now, and the tasks that wait for it, for repeated
 * queries: nothing else of asyncio is read (tasks.h reads all tasks).
 *
 * Threading: one thread at a time. The memory that is passed to prb_asyncio_running_read() must not
 * change, or be proven later not to have changed. prb_asyncio_watch_refresh() may read moving
 * memory, and may take milliseconds.
 */
#ifndef PRB_PYTHON_ASYNCIO_RUNNING_H
#define PRB_PYTHON_ASYNCIO_RUNNING_H

#include "base/error.h"
#include "base/vec.h"
#include "python/python.h"
#include "dwarf/elf/module.h"
#include "target/mem/mem.h"

struct prb_asyncio_watch;

/** Borrows @p py and @p modules. */
struct prb_error *prb_asyncio_watch_create(struct prb_python *py, struct prb_modules *modules,
					   struct prb_asyncio_watch **ret) PRB_MUST_CHECK;
void prb_asyncio_watch_destroy(struct prb_asyncio_watch *watch);

/**
 * Finds out whether asyncio is there by now, in all interpreters, and where. To be called from time
 * to time. Unknown parts count as none.
 */
struct prb_error *prb_asyncio_watch_refresh(struct prb_asyncio_watch *watch,
					    struct prb_mem *mem) PRB_MUST_CHECK;

/** A task in the chain. */
struct prb_asyncio_link {
	char *name;	     /**< NULL: none, or one that asyncio has made up */
	size_t first, count; /**< its frames, innermost first; of the running task none */
};

struct prb_asyncio_running {
	/** The running task, its waiter, and so on. None if no task runs. */
	PRB_VEC(struct prb_asyncio_link) tasks;
	PRB_VEC(struct prb_py_frame) frames; /**< of all but the running one */
	uint64_t frame;	   /**< the outermost frame of the running task, on the thread's stack */
	unsigned awaiters; /**< so many tasks wait for the last one, which are not followed; or 0 */
	bool broken;	   /**< the waiters of the last one could not be read */
};

/** True if the frame at that address is on the thread's stack. */
typedef bool prb_asyncio_on_stack(void *context, uint64_t frame);

/** Only memory is an error: what cannot be read is no task. *ret is to be ended always. */
struct prb_error *prb_asyncio_running_read(struct prb_asyncio_watch *watch, struct prb_mem *mem,
					   const struct prb_py_thread *thread,
					   prb_asyncio_on_stack *on_stack, void *context,
					   struct prb_asyncio_running *ret) PRB_MUST_CHECK;
void prb_asyncio_running_deinit(struct prb_asyncio_running *running);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What is built in of where the members of tasks and futures of the extension module _asyncio
 * lie: what a module says of itself comes before it (python/asyncio/layout.h). Constant data.
 */
#ifndef PRB_PYTHON_LAYOUT_ASYNCIO_TABLE_H
#define PRB_PYTHON_LAYOUT_ASYNCIO_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "python/layout/layout.h"

/** X(member of struct prb_asyncio_layout, DWARF path); see fields.h. */
#define PRB_ASYNCIO_FIELDS(X)                                             \
	X(size, "TaskObj")                                                \
	X(loop, "TaskObj.task_loop")                                      \
	X(callback, "TaskObj.task_callback0")                             \
	X(callbacks, "TaskObj.task_callbacks")                            \
	X(exception, "TaskObj.task_exception")                            \
	X(state, "TaskObj.task_state")                                    \
	X(awaited_by, "TaskObj.task_awaited_by")                          \
	X(awaited_by_is_set, "TaskObj.task_awaited_by_is_set")            \
	X(waiter, "TaskObj.task_fut_waiter")                              \
	X(coro, "TaskObj.task_coro")                                      \
	X(name, "TaskObj.task_name")                                      \
	X(node, "TaskObj.task_node")                                      \
	X(interp_tasks, "_is.asyncio_tasks_head")                         \
	X(thread_tasks, "_PyThreadStateImpl.asyncio_tasks_head")          \
	X(thread_running_loop, "_PyThreadStateImpl.asyncio_running_loop") \
	X(thread_running_task, "_PyThreadStateImpl.asyncio_running_task")

struct prb_asyncio_layout {
	uint16_t version;
	bool free_threaded;

#define PRB_ASYNCIO_MEMBER(name, path) int32_t name;
	PRB_ASYNCIO_FIELDS(PRB_ASYNCIO_MEMBER)
#undef PRB_ASYNCIO_MEMBER
};

/** The tables, which tests/tools/gen-layouts wrote; the last one has version 0. */
extern const struct prb_asyncio_layout prb_asyncio_tables[];

/** The one of that build of Python; NULL if there is none. */
const struct prb_asyncio_layout *prb_asyncio_table_find(const struct prb_layout *python);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Where the members of the tasks and futures of the extension module _asyncio lie.
 *
 * Like the layout of the interpreter, the offsets come from the module itself (its section
 * `.AsyncioDebug`, 3.14+), over its DWARF (kept in the disk cache), over built-in tables. Futures
 * begin like tasks.
 */
#ifndef PRB_PYTHON_ASYNCIO_ASYNCIO_LAYOUT_H
#define PRB_PYTHON_ASYNCIO_ASYNCIO_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "python/layout/layout.h"
#include "python/python.h"
#include "dwarf/elf/module.h"
#include "target/mem/mem.h"

/** X(member of struct prb_asyncio_layout, DWARF path); see layout_fields.h. */
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

/** A field's name, DWARF path and place in struct prb_asyncio_layout. */
extern const struct prb_layout_field prb_asyncio_fields[];
extern const unsigned prb_asyncio_field_count;

/** The compilation unit that describes all of them. */
extern const char prb_asyncio_unit[];

/** The built-in tables, which tests/tools/gen-layouts wrote; the last one has version 0. */
extern const struct prb_asyncio_layout prb_asyncio_tables[];

/**
 * The layout for @p py, whose _asyncio lies in @p module (NULL: not known, as in a snapshot).
 * PRB_ERROR_UNSUPPORTED for a version before 3.7 or one of which nothing tells the layout.
 */
struct prb_error *prb_asyncio_layout_load(struct prb_python *py, struct prb_mem *mem,
					  struct prb_module *module,
					  struct prb_asyncio_layout *ret) PRB_MUST_CHECK;

#endif

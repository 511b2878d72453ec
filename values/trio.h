/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The tasks of a trio run, with their stacks, from the set of them that its runner keeps.
 *
 * Threading: one thread at a time. The caller sees to it that the memory is of one instant.
 */
#ifndef PRB_VALUES_TRIO_H
#define PRB_VALUES_TRIO_H

#include "base/error.h"
#include "base/vec.h"
#include "python/python.h"

struct prb_trio_frame {
	struct prb_py_code code;
	struct prb_py_location location;
	char *qualname; /**< NULL where it cannot be known */
};

struct prb_trio_task {
	uint64_t address, parent;	       /**< the task whose nursery it is in; 0: none */
	char *name;			       /**< NULL if it could not be read */
	bool running;			       /**< the current one: its frames are the thread's */
	uint64_t lock;			       /**< the Lock that it waits for; 0: none */
	uint64_t owner;			       /**< the task that the lock names; 0: none */
	bool limited;			       /**< a scope around it ends the wait at some time */
	PRB_VEC(struct prb_trio_frame) frames; /**< innermost first */
};

struct prb_trio_tasks {
	PRB_VEC(struct prb_trio_task) list;
};

/** Reads the tasks in the set object @p tasks. */
struct prb_error *prb_trio_read(struct prb_python *py, struct prb_mem *mem, uint64_t tasks,
				struct prb_trio_tasks *ret) PRB_MUST_CHECK;
void prb_trio_deinit(struct prb_trio_tasks *tasks);

#endif

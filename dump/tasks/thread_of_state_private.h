/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The descriptors of threads, shared by thread_of_state.c and libc_thread_lists.c. Internal
 * to dump/tasks/.
 */
#ifndef PRB_DUMP_TASKS_THREAD_OF_STATE_PRIVATE_H
#define PRB_DUMP_TASKS_THREAD_OF_STATE_PRIVATE_H

#include "dump/tasks/thread_of_state.h"

/** The descriptor at @p self; NULL if no thread of the process has it. */
struct prb_error *prb_thread_finder_descriptor(struct prb_thread_finder *finder,
					       struct prb_mem *mem, uint64_t self,
					       struct prb_descriptor **ret) PRB_MUST_CHECK;

/** Adds the descriptors of all threads, from the C library's lists. Does so only once. */
struct prb_error *prb_thread_finder_walk(struct prb_thread_finder *finder,
					 struct prb_mem *mem) PRB_MUST_CHECK;

bool prb_descriptor_is_musl(const struct prb_descriptor *descriptor);

/** The thread whose C stack, other than that of the first, holds @p address; or NULL. */
const struct prb_descriptor *prb_thread_finder_by_stack(const struct prb_thread_finder *finder,
							uint64_t address);

#endif

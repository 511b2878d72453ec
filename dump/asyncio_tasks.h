/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reads the asyncio tasks of a runtime at one instant.
 *
 * Tasks change only while the thread of their event loop runs. If their threads slept during the
 * reading, the tasks are exact; a thread that ran is stopped for one bulk copy.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_DUMP_ASYNCIO_TASKS_H
#define PRB_DUMP_ASYNCIO_TASKS_H

#include "base/error.h"
#include "python/asyncio/tasks.h"
#include "dwarf/elf/module.h"
#include "target/target.h"
#include "dump/model/dump.h"

struct prb_asyncio_reading {
	struct prb_asyncio_tasks tasks;
	enum prb_read_kind read; /**< of the threads with loops: the least exact kind */
	double pause_us;	 /**< how long we stopped these threads, in all */
	double now; /**< the target's monotonic clock, as loops use it; 0: not known (cores) */
};

/**
 * Reads the tasks of @p py, which is the @p index-th runtime of the target; see
 * prb_asyncio_tasks_read() for @p values. While a snapshot is recorded, it gets the pages of this
 * reading.
 */
struct prb_error *prb_asyncio_reading_create(struct prb_target *target, struct prb_modules *modules,
					     struct prb_python *py, unsigned index,
					     enum prb_dump_mode mode, bool values,
					     struct prb_asyncio_reading **ret) PRB_MUST_CHECK;
void prb_asyncio_reading_destroy(struct prb_asyncio_reading *reading);

#endif

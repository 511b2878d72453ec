/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Adds to a dump the tasks of asyncio's and trio's loops, and the greenlets that wait.
 *
 * They are looked for only where a thread's stack, or a library that is loaded, shows that there
 * are such: tasks if a frame is of asyncio or trio, or uvloop is loaded, greenlets if a frame is of
 * gevent, eventlet or greenlet or gevent is loaded. Greenlets take a walk over all objects.
 *
 * A task that others wait for is shown once for each task at the end of that chain: the frames of
 * the task that waits itself, then those of its awaiter. Tasks in the middle have no entry. Of
 * tasks that await each other in a circle, the first one has.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_DUMP_WAITING_H
#define PRB_DUMP_WAITING_H

#include "dump/dump.h"

/**
 * Fills dump->tasks. @p found: of that dump. What cannot be read becomes a warning of the dump.
 */
struct prb_error *prb_dump_add_tasks(struct prb_target *target, enum prb_dump_mode mode,
				     const struct prb_dump_found *found,
				     struct prb_dump *dump) PRB_MUST_CHECK;

#endif

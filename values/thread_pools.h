/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The tasks in the queue of a pool of threads: of concurrent.futures.ThreadPoolExecutor, and
 * of multiprocessing.pool.ThreadPool.
 *
 * Threading: as values/interpreters.h. What the objects say is the target's word.
 */
#ifndef PRB_VALUES_THREAD_POOLS_H
#define PRB_VALUES_THREAD_POOLS_H

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"

/** A result that a thread waits for: a Future, or a result of ThreadPool. */
struct prb_awaited {
	uint64_t object; /**< 0: it waits for something else */
	bool queued;	 /**< its task is in the queue */
	bool running;	 /**< its task is one of `running` */
};

struct prb_thread_pool {
	uint64_t queue; /**< the object from which its threads get their tasks */
	/** The weak reference to the executor; 0: of a ThreadPool, whose results know it. */
	uint64_t reference;
	/** Possible ThreadPools, for Python before 3.8, whose results do not refer to their pool.
	 */
	PRB_VEC(uint64_t) candidates;
	/** The tasks that its threads run: each a _WorkItem, or the number of a job. */
	PRB_VEC(uint64_t) running;
	PRB_VEC(struct prb_awaited) awaited;

	/* Read: */
	bool whole;	       /**< all of what follows is known */
	int64_t threads, most; /**< that it has, and may have */
	size_t queued;	       /**< tasks */
};

/** Fills what is to be read. PRB_ERROR_NOMEM is the only error. */
struct prb_error *prb_thread_pool_read(struct prb_target *t,
				       struct prb_thread_pool *pool) PRB_MUST_CHECK;
/** A pool that is {} needs none. */
void prb_thread_pool_deinit(struct prb_thread_pool *pool);

#endif

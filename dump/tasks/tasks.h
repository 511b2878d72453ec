/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Detects whether a thread ran during a reading. A thread that did not run cannot have
 * changed its stack.
 *
 * For each thread of a process its scheduler counters (`schedstat`: time run, time waited, times
 * run) and its state are noted before the reading, and compared after it. Equal counters and a
 * sleeping state both times mean that the data in between is exact, although the thread was never
 * stopped. The counters of a thread on a processor move only at a tick, so state R proves nothing.
 * Where a kernel does not keep `schedstat`, context switches from `status` take its place.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_DUMP_TASKS_TASKS_H
#define PRB_DUMP_TASKS_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"

struct prb_task_watch {
	pid_t tid;
	pid_t inner_tid; /**< in the target's own pid namespace */
	char state;	 /**< R S D T t Z I, X if the thread is gone; 0 if unknown */
	char name[64];	 /**< comm */

	/* The rest belongs to tasks.c. */
	char counters[64];
	int counters_fd, stat_fd;
	bool reopens; /* files are opened for each read */
};

struct prb_tasks {
	PRB_VEC(struct prb_task_watch) list; /**< by tid */
	bool by_status;			     /**< no `schedstat`: context switches are compared */
	bool other_tids;		     /**< the target is in a pid namespace of its own */
	struct prb_target *target;	     /**< borrowed */
};

/** Lists the threads of @p t and notes their counters. */
struct prb_error *prb_tasks_create(struct prb_target *t, struct prb_tasks *ret) PRB_MUST_CHECK;
void prb_tasks_deinit(struct prb_tasks *tasks);

/**
 * Lists the threads of a live process anew. Entries of threads that still exist keep their notes;
 * pointers to entries become invalid.
 */
struct prb_error *prb_tasks_update(struct prb_tasks *tasks, struct prb_target *t) PRB_MUST_CHECK;

/** Notes state and counters of one thread now. */
void prb_task_note(struct prb_tasks *tasks, struct prb_task_watch *task);

/** Notes the counters of one thread only. */
void prb_task_note_counters(const struct prb_tasks *tasks, struct prb_task_watch *task);

/**
 * True if the thread is gone or a zombie: an ended main thread stays in the list while others run.
 * False if its state is unknown: a core may lack it, and a live thread's files may not be readable
 * for want of descriptors; such a thread can be read.
 */
static inline bool prb_task_has_ended(const struct prb_task_watch *task)
{
	return task->state == 'Z' || task->state == 'X';
}

/**
 * True if the thread slept from when it was noted until now. @p seen_off: in between, its `syscall`
 * was not "running", for which the kernel checks that it has no processor. It can neither get nor
 * leave a processor without a change of its counters, so its state need not be read again.
 */
bool prb_task_slept(struct prb_tasks *tasks, const struct prb_task_watch *task, bool seen_off);

/** The scheduler's counters of a thread, since its start. */
struct prb_task_times {
	int64_t ran;	/**< ns on a processor; of a running thread, up to the last tick */
	int64_t waited; /**< ns runnable without a processor */
	int64_t turns;	/**< how often it got a processor */
};

static inline bool prb_task_times_equal(const struct prb_task_times *a,
					const struct prb_task_times *b)
{
	return a->ran == b->ran && a->waited == b->waited && a->turns == b->turns;
}

/** The times noted last; false if unknown. */
bool prb_task_times(const struct prb_tasks *tasks, const struct prb_task_watch *task,
		    struct prb_task_times *ret);

/** The present times, without noting them; false if unknown. */
bool prb_task_times_now(const struct prb_tasks *tasks, const struct prb_task_watch *task,
			struct prb_task_times *ret);

/** The tid of a thread in its own pid namespace. */
pid_t prb_task_inner_tid(struct prb_target *t, pid_t tid);

/** The entry for a tid as the target sees it (its pid namespace), or NULL. */
struct prb_task_watch *prb_tasks_find_inner(struct prb_tasks *tasks, pid_t inner_tid);

#endif

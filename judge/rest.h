/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What can end the wait of a sleeping thread: a clock, somebody outside of the program, one
 * certain process, or only the program itself. It tells an idle server from a hung program.
 *
 * A wait that is not described counts as one that only the program itself can end.
 *
 * Threading: any thread.
 */
#ifndef PRB_JUDGE_REST_H
#define PRB_JUDGE_REST_H

#include <stdbool.h>
#include <sys/types.h>

#include "judge/judge.h"

enum prb_rest_kind {
	PRB_REST_RUNS,	   /**< it does not sleep */
	PRB_REST_CLOCK,	   /**< the wait has a limit of time */
	PRB_REST_OUTSIDE,  /**< a client, a terminal, a signal, a file that is watched */
	PRB_REST_CHILDREN, /**< any child */
	PRB_REST_PROCESS,  /**< `pid`: a child, or the other end of a pipe or socket */
	PRB_REST_THREAD,   /**< `pid`: the thread that holds a lock */
	PRB_REST_INSIDE,   /**< anything else: a lock, a queue, a peer that does not answer */
};

struct prb_rest {
	enum prb_rest_kind kind;
	pid_t pid; /**< 0: none */
};

/** Of who can end a wait of the process @p own. */
struct prb_rest prb_rest_of(const struct prb_enders *enders, pid_t own);

/** Of a thread of the case's dump, whose target may be asked for the limit of a futex. */
struct prb_rest prb_case_rest(const struct prb_case *c, const struct prb_dump_thread *thread);

/** True if the thread runs, or a clock or somebody unknown ends its wait. */
bool prb_thread_moves(const struct prb_dump_thread *thread);

/** True if the thread runs, or a clock or somebody outside of the program may end its wait. */
bool prb_case_goes_on(const struct prb_case *c, const struct prb_dump_thread *thread);

#endif

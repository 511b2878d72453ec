/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Loads and calls the agent's own Python code (agent/eval/bootstrap.py, prompt.py,
 * complete.py) in the process's interpreter.
 *
 * Threading: the caller holds the GIL, or is attached in a build without one.
 */
#ifndef PRB_AGENT_EVAL_BOOTSTRAP_H
#define PRB_AGENT_EVAL_BOOTSTRAP_H

#include <stdbool.h>

#include "agent/inside/export.h"

struct prba_connection;

/** Results of the bootstrap's run(). */
enum prba_ran {
	PRBA_RAN_FAILED = -1, /**< it could not even say what happened; an exception is set */
	PRBA_RAN,
	PRBA_RAN_RAISED,
	PRBA_RAN_INTERRUPTED,
	PRBA_RAN_INCOMPLETE,
	PRBA_RAN_EXIT,
};

/** Runs the code of the connection's job, or completes its text. */
enum prba_ran prba_bootstrap_run(struct prba_connection *c);

/** Runs some Python, so that an exception from outside is raised, and drops it. */
void prba_bootstrap_settle(void);

/**
 * Undoes what the last call put into the interpreter; true if the program's own Ctrl-C came in
 * between.
 */
bool prba_bootstrap_leave(void);

/** Forgets what the connection's evaluations left, but for what they did to the program. */
void prba_bootstrap_close(struct prba_connection *c);

/** What threading keeps of the calling thread, for whose client other clients' code has run. */
void prba_bootstrap_forget_thread(void);

/**
 * Removes all of it from the interpreter, the exit hook (finalization.h) too. False if some of our
 * functions stay in use there.
 */
bool prba_bootstrap_release(void);

/**
 * Does what probing.torch.profiling says, also before torch is imported. 0, or ENOSYS if there is
 * no Python that it can be done in. For any thread, whether it holds the GIL or not.
 */
PRBA_EXPORT int probing_torch_apply(void);

/** Of this process, so that a child does not talk to the clients of its parent. Any thread. */
int prba_bootstrap_forks(void);
void prba_bootstrap_forked(void);

#endif

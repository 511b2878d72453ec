/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The names of the agent's threads, as the kernel has them: the agent starts its threads
 * under these, and readers know them by these. Allocates nothing. Threading: constant.
 */
#ifndef PRB_AGENT_THREADS_H
#define PRB_AGENT_THREADS_H

#include <stdbool.h>
#include <string.h>

/** Begins all of them. Threads that a client's code starts inherit the name of the one it runs on.
 */
#define PRB_AGENT_THREAD "probing-"

/** Ends the name of a thread that evaluates code of a client; one for each client. */
#define PRB_AGENT_THREAD_EVAL "eval"

/** True for the name of a thread of the agent, or of one that inherited its name. */
static inline bool prb_is_agent_thread(const char *name)
{
	return !strncmp(name, PRB_AGENT_THREAD, sizeof(PRB_AGENT_THREAD) - 1);
}

#endif

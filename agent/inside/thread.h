/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The threads of ours in the process: how they are started, named and recognised. */
#ifndef PRB_AGENT_INSIDE_THREAD_H
#define PRB_AGENT_INSIDE_THREAD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Starts a thread of ours, PRB_AGENT_THREAD (agent/threads.h) @p name, with all signals blocked,
 * but for those that a fault of its own raises: blocked, they would end the process without its
 * handlers. 0 or an errno value.
 */
int prba_thread_start(pthread_t *ret, size_t stack, const char *name, void *(*run)(void *),
		      void *argument);

/**
 * The kernel's ids of our threads, 32 bits each; ids that are not positive belong to no thread.
 * Code of a client may start threads, which inherit the name of the one that runs it.
 */
const void *prba_thread_ids(uint32_t *count);

/**
 * The calling thread of ours begins to run code of a client. That blocks what the main thread
 * blocks, as a thread of the program would: processes that it starts inherit it, and not by fork()
 * alone. The kernel still prefers the main thread for signals of the process. What our thread does
 * not block, it does not block now either. Gives what it blocks, for prba_thread_ran_code().
 */
uint64_t prba_thread_runs_code(void);

/** That code has ended: @blocked are the signals that the thread blocks from now on. */
void prba_thread_ran_code(uint64_t blocked);

/** In a child after fork(): signals are blocked as they are elsewhere in the program. */
void prba_thread_forked(void);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Stopping threads of a process, by ptrace, for longer than it takes to read them.
 *
 * When we die, at any moment, the kernel lets them run on where they were. A signal that comes
 * meanwhile is delivered when they are let go.
 *
 * Threading: all calls from one thread of ours.
 */
#ifndef PRB_CLI_STILL_H
#define PRB_CLI_STILL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dwarf/base/error.h"
#include "dwarf/base/vec.h"
#include "injector/stop.h"

struct prb_still {
	pid_t pid;
	uint64_t gil; /**< that no thread is to be stopped waiting for */
	PRB_VEC(struct prb_stop) stops;
};

/**
 * Stops every thread there is, also those that are made meanwhile. If one cannot be stopped, those
 * that were are let go. A thread that sleeps in the kernel where nothing interrupts it is stopped
 * as soon as it leaves that.
 */
struct prb_error *prb_still_all(struct prb_still *still, pid_t pid) PRB_MUST_CHECK;

/**
 * Stops the threads that wait in a system call and are not the agent's, so that none of them takes
 * the GIL, and none stands where it holds a lock of the C library that the agent's may need; nor
 * where it waits in the condition variable of the GIL at @p gil (0: not known), which it leaves
 * soon while its mutex is held. Gives the number
 * of those that run on: threads at work in C code, and all where ptrace is not allowed.
 */
uint32_t prb_still_waiting(struct prb_still *still, pid_t pid, uint64_t gil, bool mutex_is_held);

/**
 * The mutex of the GIL at @p gil of a process whose threads wait for it with glibc, 0 if none does:
 * that one is seen to wait in its condition variable proves where both are.
 */
uint64_t prb_still_gil_mutex(pid_t pid, uint64_t gil);

/** Lets all of them go; may be called twice. */
void prb_still_end(struct prb_still *still);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Stopping threads of a process, by ptrace, for longer than it takes to read them.
 *
 * When we die, at any moment, the kernel lets them run on where they were. A signal that arrives
 * meanwhile is delivered when they are resumed.
 *
 * Threading: all calls from one thread of ours.
 */
#ifndef PRB_CONTROL_STOP_THREADS_H
#define PRB_CONTROL_STOP_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "control/gil_locks.h"
#include "target/ptrace/stop.h"

/** A thread, and how long it had run when it was first seen to. */
struct prb_thread_run {
	pid_t tid;
	uint64_t begin_ns;
};

struct prb_target;

struct prb_stopped_threads {
	pid_t pid;
	const struct prb_gil_locks *gil; /**< that no thread is to be stopped waiting for */
	PRB_VEC(struct prb_stop) stops;
	/** True if prb_stop_threads_waiting() is to give up, asked again and again; NULL: it is
	 * not. */
	bool (*is_over)(void *context);
	void *context;
	/** Where the ids of the agent's threads are, see struct prb_wire_freeze; 0: they are known
	 * by their names alone, which threads that a client's code starts there inherit. */
	uint64_t ours;
	uint32_t ours_count;

	/* The fields below are for prb_stop_threads_waiting(). */
	struct prb_target *target;
	PRB_VEC(struct prb_thread_run) runs; /**< threads that were seen at work */
	unsigned coming;		     /**< threads that are expected to wait soon */
	bool at_gil; /**< a thread waits in a condition variable of the GIL */
};

/**
 * Stops every thread there is, also those that are made meanwhile. If one cannot be stopped, the
 * stopped ones are resumed. A thread that sleeps in the kernel where nothing interrupts it is
 * stopped as soon as it leaves that.
 */
struct prb_error *prb_stop_threads_all(struct prb_stopped_threads *stopped,
				       pid_t pid) PRB_MUST_CHECK;

/**
 * Stops the threads that wait in a system call and are not the agent's, so that none of them
 * acquires the GIL. No thread is stopped while it may hold a lock of the C library that the agent's
 * threads need, nor in a condition variable of the GIL @p gil, which it leaves soon while its mutex
 * is held: if one waits there and the mutex is not held, this ends at once, with `at_gil`. If the
 * GIL's locks are unknown, no thread is stopped: one waiting on the GIL's condition variable must
 * keep running. A running thread is expected to wait soon, until it has used 20 ms of CPU; it gets
 * about a second for that. Returns the number of threads that run on: threads at work in C code,
 * and all where ptrace is not allowed.
 */
uint32_t prb_stop_threads_waiting(struct prb_stopped_threads *stopped, struct prb_target *target,
				  const struct prb_gil_locks *gil, bool mutex_is_held);

/** True if a thread is seen to wait in a condition variable of the GIL, which proves where they
 * are, and its mutex.
 */
bool prb_stop_threads_waits_for_gil(pid_t pid, const struct prb_gil_locks *gil);

/** Lets all of them go; may be called twice. */
void prb_stop_threads_end(struct prb_stopped_threads *stopped);

#endif

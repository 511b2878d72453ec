/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Finds the Python lock that a frame waits for, and its owner. */
#ifndef PRB_PYTHON_RUNTIME_LOCKS_H
#define PRB_PYTHON_RUNTIME_LOCKS_H

#include "base/error.h"
#include "python/python.h"

struct prb_py_lock {
	const char *type; /**< "RLock", "lock", "SemLock" (of multiprocessing, for one at a time) or
			   * "SimpleQueue", static; NULL if none was found */
	uint64_t address; /**< of the lock object */
	uint64_t owner;	  /**< pthread that holds an RLock; 0 if unknown: a plain lock has none. Of
			   * a SemLock the one of this process that took it last and has not
			   * released it */
	uint64_t recursion; /**< how many times it holds it */
	bool held;	    /**< no RLock: it is this one, for sure, and it is held */
	bool recursive;	    /**< a SemLock that only its owner can release */
};

/**
 * The address of the semaphore of the SemLock @p object, for one at a time, if the thread
 * @p pthread took it last in this process and has not released it; else 0.
 */
struct prb_error *prb_python_taken_sem_lock(struct prb_python *py, struct prb_mem *mem,
					    uint64_t object, uint64_t pthread,
					    uint64_t *ret) PRB_MUST_CHECK;

/**
 * Looks through the variables and the value stack of @p frame, the innermost Python frame of a
 * thread that sleeps in futex() on @p futex, for the lock object that this address belongs to.
 */
struct prb_error *prb_python_lock(struct prb_python *py, struct prb_mem *mem,
				  const struct prb_py_frame *frame, uint64_t futex,
				  struct prb_py_lock *ret) PRB_MUST_CHECK;

#endif

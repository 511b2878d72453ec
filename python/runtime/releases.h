/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Whether a lock that a frame entered by `with` may have been released since: judged by the
 * names that code uses. Modules of the standard library release locks of their own only.
 */
#ifndef PRB_PYTHON_RUNTIME_RELEASES_H
#define PRB_PYTHON_RUNTIME_RELEASES_H

#include "base/error.h"
#include "python/python.h"

/**
 * True if the code of @p frame, or an object that it has entered, may release the lock. @p holder:
 * the frame that has entered the lock, and @p level objects since; @p frame: the same, or one that
 * it called, directly or not. @p retakes: also what takes locks counts, for it may be about to take
 * this one again.
 */
struct prb_error *prb_python_may_release(struct prb_python *py, struct prb_mem *mem,
					 const struct prb_py_frame *holder, unsigned level,
					 const struct prb_py_frame *frame, bool retakes,
					 bool *ret) PRB_MUST_CHECK;

/**
 * What @p object, entered by a `with` statement that leaves it by @p leave, locks: a condition is
 * entered by its lock, one of multiprocessing by its SemLock, anything else is its own.
 */
struct prb_error *prb_python_lock_of(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				     uint64_t leave, uint64_t *ret) PRB_MUST_CHECK;

/**
 * True if the semaphore that a thread waits for by acquire(), as its innermost @p frames say, seems
 * to be used as a lock: by `with`, or by code that releases it, too. Else it may be a signal that
 * another thread is to give.
 */
struct prb_error *prb_python_uses_as_lock(struct prb_python *py, struct prb_mem *mem,
					  const struct prb_py_frames *frames,
					  bool *ret) PRB_MUST_CHECK;

enum { PRB_RELEASED_MAX = 4 };
/** The locks that a stack has released because it waits for conditions of them. Starts as {}. */
struct prb_py_released {
	uint64_t locks[PRB_RELEASED_MAX];
	unsigned count;
};

/** Adds that of a frame, if it can be known; PRB_ERROR_NOMEM is the only error. */
struct prb_error *prb_python_note_released(struct prb_python *py, struct prb_mem *mem,
					   const struct prb_py_frame *frame,
					   struct prb_py_released *released) PRB_MUST_CHECK;

/** True if @p lock is among them. */
bool prb_python_is_released(const struct prb_py_released *released, uint64_t lock);

/** True if the frame is Condition.wait() of a condition of @p lock, which has released it. */
struct prb_error *prb_python_waits_in_condition(struct prb_python *py, struct prb_mem *mem,
						const struct prb_py_frame *frame, uint64_t lock,
						bool *ret) PRB_MUST_CHECK;

#endif

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

/** True if @p function is of a module of the standard library that has locks of its own. */
struct prb_error *prb_python_is_of_library(struct prb_python *py, struct prb_mem *mem,
					   uint64_t function, bool *ret) PRB_MUST_CHECK;

/** The lock that the frame has released because it is Condition.wait(); 0 if it is not. */
struct prb_error *prb_python_condition_waited(struct prb_python *py, struct prb_mem *mem,
					      const struct prb_py_frame *frame,
					      uint64_t *ret) PRB_MUST_CHECK;

/** True if the frame is Condition.wait() of a condition of @p lock, which has released it. */
struct prb_error *prb_python_waits_in_condition(struct prb_python *py, struct prb_mem *mem,
						const struct prb_py_frame *frame, uint64_t lock,
						bool *ret) PRB_MUST_CHECK;

#endif

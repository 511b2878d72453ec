/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The mutexes and condition variables of a GIL, with glibc.
 *
 * Threading: any.
 */
#ifndef PRB_CONTROL_GIL_LOCKS_H
#define PRB_CONTROL_GIL_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python.h"

/** Threads that dropped the GIL on request wait in the second pair until another has acquired it.
 */
struct prb_gil_locks {
	bool known;
	uint64_t condition, mutex, switch_condition,
		switch_mutex; /**< all 0 in a free-threaded build */
};

/** The locks of the GIL of @p interp. */
struct prb_gil_locks prb_gil_locks(const struct prb_python *py, const struct prb_interp *interp);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which thread collects garbage, also while it waits for something.
 *
 * The interpreter has a flag for a collection in progress, but no note of the thread. Usually that
 * is the GIL holder. But a finaliser or a callback of a weak reference may block and release the
 * GIL. All that time the objects of the collection hang in lists whose heads are on the C stack of
 * the collecting thread.
 */
#ifndef PRB_PYTHON_RUNTIME_COLLECTING_H
#define PRB_PYTHON_RUNTIME_COLLECTING_H

#include "base/error.h"
#include "python/python.h"

/**
 * True if the head of a list of the garbage collector is found in [@p start, @p end) of a thread's
 * C stack. Never for builds without a GIL, which have no such lists.
 */
struct prb_error *prb_python_collects(struct prb_python *py, struct prb_mem *mem, uint64_t start,
				      uint64_t end, bool *ret) PRB_MUST_CHECK;

#endif

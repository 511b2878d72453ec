/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The last resort for interpreters without symbols: searching the module's writable data.
 */
#ifndef PRB_PYTHON_RUNTIME_SCAN_H
#define PRB_PYTHON_RUNTIME_SCAN_H

#include "base/error.h"
#include "python/python.h"

/** True if what py->runtime or py->interp_head points at is what it is taken for. */
typedef struct prb_error *prb_runtime_check(struct prb_python *py, struct prb_mem *mem);

/**
 * Looks in the writable mappings of py->module for a pointer to an interpreter whose first thread
 * state points back at it, and sets py->runtime (3.7+) or py->interp_head to the first for which
 * @p check succeeds. The layout must be set. PRB_ERROR_NOT_FOUND if there is none; both are 0 then.
 */
struct prb_error *prb_runtime_scan(struct prb_python *py, struct prb_mem *mem,
				   prb_runtime_check *check) PRB_MUST_CHECK;

/**
 * Looks there for a _Py_DebugOffsets (3.13+), with which the runtime begins, and sets py->runtime,
 * which stays 0 if there is none. No layout is needed.
 */
struct prb_error *prb_runtime_scan_cookie(struct prb_python *py,
					  struct prb_mem *mem) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The last resort for interpreters without symbols: searching the module's writable data.
 */
#ifndef PRB_CPYTHON_RUNTIME_SCAN_H
#define PRB_CPYTHON_RUNTIME_SCAN_H

#include "dwarf/base/error.h"
#include "dwarf/cpython/python.h"

/**
 * Looks in the writable mappings of py->module for a pointer to an interpreter whose first thread
 * state points back at it, and sets py->runtime (3.7+) or py->interp_head. The layout must be
 * set. PRB_ERROR_NOT_FOUND if there is none.
 */
struct prb_error *prb_runtime_scan(struct prb_python *py, struct prb_mem *mem) PRB_MUST_CHECK;

#endif

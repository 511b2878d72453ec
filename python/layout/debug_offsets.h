/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The table of offsets that CPython 3.13+ carries at the start of _PyRuntime.
 */
#ifndef PRB_PYTHON_LAYOUT_DEBUG_OFFSETS_H
#define PRB_PYTHON_LAYOUT_DEBUG_OFFSETS_H

#include "base/error.h"
#include "python/layout/layout.h"
#include "target/mem/mem.h"

/**
 * True if @p runtime begins with the table's cookie and a version of 3.13 or later; the cookie's
 * text alone occurs several times in a binary. Sets PY_VERSION_HEX.
 */
bool prb_debug_offsets_present(struct prb_mem *mem, uint64_t runtime, uint32_t *hexversion);

/**
 * Overwrites the fields of @p layout that the table has; layout->version must be set.
 * PRB_ERROR_UNSUPPORTED for a minor version whose table we do not know.
 */
struct prb_error *prb_debug_offsets_read(struct prb_mem *mem, uint64_t runtime,
					 struct prb_layout *layout) PRB_MUST_CHECK;

/** Where requests of sys.remote_exec() are written (3.14+): offsets in a thread state, but for
 * `enabled`, which is in the interpreter's structure. */
struct prb_remote_exec_offsets {
	uint64_t eval_breaker, enabled, pending, path, path_size;
};

/** PRB_ERROR_UNSUPPORTED before 3.14. */
struct prb_error *prb_debug_offsets_remote_exec(struct prb_mem *mem, uint64_t runtime,
						struct prb_remote_exec_offsets *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Loops in bytecode, and whether one can change anything but local variables.
 *
 * Opcodes of each version are in opcodes.inc, which tests/tools/gen-opcodes writes. Code of another
 * version is unknown, and so is what a tracer has rewritten.
 */
#ifndef PRB_PYTHON_RUNTIME_LOOPS_H
#define PRB_PYTHON_RUNTIME_LOOPS_H

#include "base/error.h"
#include "python/python.h"

struct prb_py_loop {
	bool found;
	/** It calls nothing but len() and isinstance(), steps no iterator, and stores into local
	 * variables only: while these keep their values, it goes on like this. */
	bool closed;
	int64_t first, end; /**< positions in bytes, as of prb_python_position() */
};

/**
 * Finds the innermost loop of the code object at @p code that contains the positions from @p first
 * to @p last.
 */
struct prb_error *prb_python_loop(struct prb_python *py, struct prb_mem *mem, uint64_t code,
				  int64_t first, int64_t last,
				  struct prb_py_loop *ret) PRB_MUST_CHECK;

#endif

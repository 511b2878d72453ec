/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What a frame is inside of: the objects of its `with` and `async with` statements that it
 * has entered and not begun to leave.
 *
 * Python keeps the __exit__ of each on the frame's value stack. Which slots those are follows from
 * the frame's position alone (3.11+: the table of exception handlers; before: the frame's stack of
 * blocks), so the stack pointer, which is in a register while a frame runs, is not needed.
 */
#ifndef PRB_PYTHON_RUNTIME_ENTERED_H
#define PRB_PYTHON_RUNTIME_ENTERED_H

#include "base/error.h"
#include "python/python.h"

/** CPython allows 20 nested blocks in a function. */
enum { PRB_ENTERED_MAX = 24 };

struct prb_py_entered {
	struct {
		uint64_t object; /**< what was entered; 0 if its __exit__ is bound to nothing */
		uint64_t leave;	 /**< its __exit__: a function, or the C method's definition; else 0
				  */
		bool in_python;	 /**< `leave` is a callable in Python */
	} list[PRB_ENTERED_MAX]; /**< innermost first */
	unsigned count;
};

/** An error if not all can be known. */
struct prb_error *prb_python_entered(struct prb_python *py, struct prb_mem *mem,
				     const struct prb_py_frame *frame,
				     struct prb_py_entered *ret) PRB_MUST_CHECK;

#endif

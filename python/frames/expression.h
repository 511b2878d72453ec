/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finding an object by an expression, without running any code in the target.
 *
 * What is understood is a name, then any number of .NAME, [NUMBER] and ['TEXT']: "self.queue",
 * "sys.modules['json'].__file__", "rows[-1]". Names are looked for in the frame, its globals and
 * the builtins; attributes in the instance (dict, values, slots), then in its class. What would run
 * code (calls, operators, properties, __getattr__, __getitem__) is not evaluated: a property shows
 * as the property object.
 *
 * Threading: as python/repr/object.h. Errors: PRB_ERROR_USAGE for what is no such expression,
 * PRB_ERROR_NOT_FOUND for what does not exist, with where the search ended.
 */
#ifndef PRB_PYTHON_FRAMES_EXPRESSION_H
#define PRB_PYTHON_FRAMES_EXPRESSION_H

#include "python/python.h"

enum { PRB_EXPRESSION_MAX = 4096 /**< bytes */ };

/** The address of the object that @p expression means in @p frame. */
struct prb_error *prb_python_find(struct prb_python *py, struct prb_mem *mem,
				  const struct prb_py_frame *frame, const char *expression,
				  uint64_t *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Makes all functions of this library that the interpreter may call, and tracks which still
 * exist. While one does, the library must stay mapped: even if the function is never called, the
 * next garbage collection reads its definition.
 *
 * Threading: the caller holds the GIL, or is attached in a build without one.
 */
#ifndef PRB_AGENT_INSIDE_FUNCTIONS_H
#define PRB_AGENT_INSIDE_FUNCTIONS_H

#include <stdbool.h>

#include "agent/inside/python_table.h"

/** A new reference; NULL with an exception. @p self may be NULL. */
object *prba_functions_make(struct prba_method *method, object *self);

/**
 * Calls a function of a module, or a method, with one argument or NULL. A new reference; NULL with
 * an exception.
 */
object *prba_functions_call(object *of, const char *name, object *argument);

/** True if none is left in the interpreter. Without an exception. */
bool prba_functions_are_gone(void);

#endif

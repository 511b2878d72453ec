/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The functions of this library that the interpreter may call: all are made here, so that the
 * library is unmapped only when none is left. One that is left need not be called to do harm: the
 * next garbage collection would read its definition.
 *
 * Threading: the caller holds the GIL, or is attached in a build without one.
 */
#ifndef PRB_AGENT_FUNCTIONS_H
#define PRB_AGENT_FUNCTIONS_H

#include <stdbool.h>

#include "inside/python_table.h"

/** A new reference; NULL with an exception. @p self may be NULL. */
object *prba_functions_make(struct prba_method *method, object *self);

/** True if none is left in the interpreter. Without an exception. */
bool prba_functions_are_gone(void);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file C functions by which the interpreter itself works: how it calls and looks things up.
 *
 * Between a Python function and the C code it called, or that called it, stand some ten of them,
 * which say nothing that the two do not say. Functions that do what a program asked for by name
 * (`time_sleep`, `list_sort`, `gc_collect_main`) are not among them.
 */
#ifndef PRB_DUMP_NATIVE_OWN_FRAMES_H
#define PRB_DUMP_NATIVE_OWN_FRAMES_H

#include <stdbool.h>

/**
 * True if the function @p name, of the module that holds the interpreter, is one of those. Code
 * without a name is, too. Parts that compilers make of functions (".part.0") count as the whole.
 */
bool prb_is_own_function(const char *name);

/** True if the name is one of CPython's interface for C code. */
bool prb_is_of_interface(const char *name);

/** True if the name is one of the helpers that Cython puts into each module. */
bool prb_is_of_cython(const char *name);

/** True if it does what the program `python` does: a main() that calls it has nothing to say. */
bool prb_runs_program(const char *name);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The interpreter's own C functions: how it calls functions and looks up names.
 *
 * Some ten of them lie between a Python function and the C code that it called, or that called it.
 * They tell the user nothing. Functions that a program requested by name (`time_sleep`,
 * `list_sort`, `gc_collect_main`) are not among them.
 */
#ifndef PRB_DUMP_NATIVE_OWN_FRAMES_H
#define PRB_DUMP_NATIVE_OWN_FRAMES_H

#include <stdbool.h>

/**
 * True if the function @p name, of the module that holds the interpreter, is such a function. Code
 * without a name is too. Compiler-made parts of functions (".part.0") count as the whole.
 */
bool prb_is_own_function(const char *name);

/** True if the name belongs to CPython's C API. */
bool prb_is_of_interface(const char *name);

/** True if the name is a helper that Cython puts into each module. */
bool prb_is_of_cython(const char *name);

/** True if it implements the program `python`: a main() that calls it is not shown. */
bool prb_runs_program(const char *name);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Cython's functions among the C frames of a dump: their names, files and lines in the .pyx.
 *
 * A module that was compiled with line directives has the lines in its debug information. For
 * others, comments in Cython's C file give the line of each part. Internal to dump/.
 */
#ifndef PRB_DUMP_NATIVE_CYTHON_H
#define PRB_DUMP_NATIVE_CYTHON_H

#include "base/error.h"
#include "dump/model/dump.h"
#include "target/target.h"

/**
 * Gives these frames their names in Cython ("module.Class.method"; the C name becomes full_func)
 * and, if they have a line of the C file, the place in the .pyx. If the C file cannot be read, the
 * frame keeps its line and the dump gets a warning.
 */
struct prb_error *prb_cython_fill(struct prb_target *target, struct prb_dump *dump) PRB_MUST_CHECK;

/** Appends the Cython name of @p func; false, and nothing is appended, if it has none. */
bool prb_cython_name(const char *func, struct prb_str *ret);

enum { PRB_CYTHON_PATH = 4096 };

/**
 * The place in a .pyx of line @p line of the C source @p text, from the last comment up to that
 * line; false if there is none. @p searched grows by the bytes that were looked at.
 */
bool prb_cython_place(const char *text, int32_t line, char path[PRB_CYTHON_PATH], int32_t *ret,
		      size_t *searched);

#endif

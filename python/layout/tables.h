/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The built-in layout tables, each in a file of its own that tests/tools/gen-layout.c wrote:
 * X(name of the table after "prb_layout_"). One per minor version and kind of build.
 *
 * They are for x86_64; prb_layout_adjust() adapts them to other machines.
 */
#ifndef PRB_PYTHON_LAYOUT_TABLES_H
#define PRB_PYTHON_LAYOUT_TABLES_H

#include "python/layout/layout.h"

#define PRB_LAYOUT_TABLES(X)        \
	X(3_4)                      \
	X(3_5)                      \
	X(3_6)                      \
	X(3_7)                      \
	X(3_8)                      \
	X(3_9)                      \
	X(3_9_debug)                \
	X(3_10)                     \
	X(3_11)                     \
	X(3_12)                     \
	X(3_13)                     \
	X(3_13_debug)               \
	X(3_13_free_threaded)       \
	X(3_13_free_threaded_debug) \
	X(3_14)                     \
	X(3_14_debug)               \
	X(3_14_free_threaded)       \
	X(3_15)                     \
	X(3_15_debug)               \
	X(3_15_free_threaded)

/**
 * A table without any field: each begins with it, and the fields that its build has replace it.
 * Compilers warn of a member that is initialised twice.
 */
#pragma GCC diagnostic ignored "-Woverride-init"
#define PRB_LAYOUT_NO_FIELD(name, path) .name = PRB_ABSENT,
#define PRB_LAYOUT_NO_FIELDS PRB_LAYOUT_FIELDS(PRB_LAYOUT_NO_FIELD).source = PRB_LAYOUT_TABLE

#define PRB_LAYOUT_DECLARE(name) extern const struct prb_layout prb_layout_##name;
PRB_LAYOUT_TABLES(PRB_LAYOUT_DECLARE)
#undef PRB_LAYOUT_DECLARE

/**
 * Moves the offsets of a built-in table to where they are on the ELF machine @p machine: the types
 * of the C library that CPython holds by value are not of the same size everywhere.
 */
void prb_layout_adjust(struct prb_layout *layout, uint16_t machine);

#endif

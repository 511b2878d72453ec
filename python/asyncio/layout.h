/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Where the members of the tasks and futures of the extension module _asyncio lie.
 *
 * Like the layout of the interpreter, the offsets come from the module itself (its section
 * `.AsyncioDebug`, 3.14+), over its DWARF (kept in the disk cache), over built-in tables. Futures
 * begin like tasks.
 */
#ifndef PRB_PYTHON_ASYNCIO_LAYOUT_H
#define PRB_PYTHON_ASYNCIO_LAYOUT_H

#include "base/error.h"
#include "python/layout/asyncio_table.h"
#include "python/layout/layout.h"
#include "python/python.h"
#include "dwarf/elf/module.h"
#include "target/mem/mem.h"

/** A field's name, DWARF path and place in struct prb_asyncio_layout. */
extern const struct prb_layout_field prb_asyncio_fields[];
extern const unsigned prb_asyncio_field_count;

/** The compilation unit that describes all of them. */
extern const char prb_asyncio_unit[];

/**
 * The layout for @p py, whose _asyncio lies in @p module (NULL: not known, as in a snapshot).
 * PRB_ERROR_UNSUPPORTED for a version before 3.7 or one whose layout is unknown.
 */
struct prb_error *prb_asyncio_layout_load(struct prb_python *py, struct prb_mem *mem,
					  struct prb_module *module,
					  struct prb_asyncio_layout *ret) PRB_MUST_CHECK;

#endif

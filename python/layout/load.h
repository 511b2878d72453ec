/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Putting together the layout of the interpreter in a module.
 */
#ifndef PRB_PYTHON_LAYOUT_LOAD_H
#define PRB_PYTHON_LAYOUT_LOAD_H

#include "base/error.h"
#include "python/layout/layout.h"
#include "dwarf/elf/module.h"
#include "target/mem/mem.h"

/**
 * Fills @p ret for the interpreter in @p module: built-in table, over it DWARF (through the disk
 * cache), over it _Py_DebugOffsets at @p runtime if they are there. @p hexversion is the
 * PY_VERSION_HEX, or 0x03NN0000 when only the minor version is known. PRB_ERROR_UNSUPPORTED if the
 * version is unknown and its layout cannot be found.
 */
struct prb_error *prb_layout_load(struct prb_module *module, struct prb_mem *mem, uint64_t runtime,
				  uint32_t hexversion, struct prb_layout *ret) PRB_MUST_CHECK;

#endif

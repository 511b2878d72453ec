/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Whether libiberty demangles a C++ name in bounded time. Parts of a name can be repeated by
 * reference, and repeated parts can be repeated: what is printed can be exponential in the name.
 *
 * Threading: no state, any thread. For demangle.c.
 */
#ifndef PRB_DWARF_LINES_CXX_COST_H
#define PRB_DWARF_LINES_CXX_COST_H

#include <stdbool.h>

struct demangle_component;

/** False if the time to read @p symbol may be out of proportion. */
bool prb_cxx_parses_soon(const char *symbol);

/** The same for printing what was read: @p tree, whose parts are all in @p block. */
bool prb_cxx_prints_soon(const char *symbol, const struct demangle_component *tree,
			 const void *block);

#endif

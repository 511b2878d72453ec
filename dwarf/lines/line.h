/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The function and line of one pc, and the functions that it was inlined into. */
#ifndef PRB_DWARF_LINES_LINE_H
#define PRB_DWARF_LINES_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct prb_line {
	char *func;    /**< demangled; NULL if unknown */
	char *symbol;  /**< of the enclosing symbol as in the file; same in all entries; or NULL */
	char *file;    /**< NULL if unknown */
	uint32_t line; /**< 0 if unknown */
	bool inlined;  /**< inlined into the next entry */
};

struct prb_lines {
	PRB_VEC(struct prb_line) list; /**< innermost inlined function first, the real one last */
	/** Why the debug information could not be used, which is there; owned by the resolver.
	 * NULL: it was used, there is none, or it was not needed. */
	const char *trouble;
};

void prb_lines_deinit(struct prb_lines *lines);

#endif

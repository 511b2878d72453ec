/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/lines/demangle.h"

#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

/* The work grows faster than the name, and an invented one could keep us busy for long. */
enum { MAX_SYMBOL = 1 << 16 };

char *prb_demangle(const char *symbol)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;

	if (symbol[0] != '_' || strnlen(symbol, MAX_SYMBOL) == MAX_SYMBOL)
		return NULL;
	if (symbol[1] == 'D')
		return cplus_demangle(symbol, options | DMGL_DLANG);
	return cplus_demangle(symbol, options | DMGL_AUTO);
}

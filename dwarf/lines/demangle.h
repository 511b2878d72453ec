/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Names of C++, Rust and D functions as their programmers wrote them (libiberty). */
#ifndef PRB_DWARF_LINES_DEMANGLE_H
#define PRB_DWARF_LINES_DEMANGLE_H

/** The demangled form of @p symbol for the caller to free, NULL if it is not a mangled name. */
char *prb_demangle(const char *symbol);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Names of C++, Rust and D functions as their programmers wrote them (libiberty). */
#ifndef PRB_DWARF_LINES_DEMANGLE_H
#define PRB_DWARF_LINES_DEMANGLE_H

/**
 * The demangled form of @p symbol for the caller to free, NULL if it is not a mangled name, or one
 * that was made to be long or slow. Any text may be given: time and memory are bounded.
 */
char *prb_demangle(const char *symbol);

#endif

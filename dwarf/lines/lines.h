/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file From a native pc to functions and source lines, inlined calls included.
 *
 * Order of cost: snapshot's recorded answer, disk cache (by build-id and offset), debug information
 * through libbfd (60–155 ms the first time a file is met), symbol table (name only). Names are
 * demangled (C++, Rust, D) with libiberty. Files without line information never go to libbfd. An
 * answer from symbols alone is asked again once the file has debug information.
 *
 * Debug information that another user could have made is parsed in a child without rights, if we
 * have more rights than others (dwarf/elf/confine.h). If that child fails, names come from symbols,
 * and `trouble` says so. Answers of the cache need no child.
 *
 * Threading: one thread at a time per resolver. Damaged debug information is no error: unreadable
 * parts count as missing.
 */
#ifndef PRB_DWARF_LINES_LINES_H
#define PRB_DWARF_LINES_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "dwarf/elf/module.h"
#include "dwarf/lines/line.h"

struct prb_resolver;

/** Borrows @p modules. One resolver keeps files and caches open for as long as it lives. */
struct prb_error *prb_resolver_create(struct prb_modules *modules,
				      struct prb_resolver **ret) PRB_MUST_CHECK;
void prb_resolver_destroy(struct prb_resolver *resolver);

/**
 * Resolves @p pc. @p exact: false for a return address (the call before it is meant).
 * Always gives at least one entry if @p pc lies in a module (func NULL if nothing is known);
 * an empty list otherwise. prb_lines_deinit() frees.
 */
struct prb_error *prb_resolve(struct prb_resolver *resolver, uint64_t pc, bool exact,
			      struct prb_lines *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Detects breakpoints that a killed debugger has left in the dynamic loader.
 *
 * Debuggers have one there, to be told of each library that is loaded. If they are killed while the
 * program runs it stays in its code, and the next library that is loaded ends the program, by
 * SIGTRAP that nobody waits for any more.
 *
 * Threading: one thread at a time. Borrows the modules.
 */
#ifndef PRB_INJECTOR_TRAPS_H
#define PRB_INJECTOR_TRAPS_H

#include "base/error.h"
#include "dwarf/elf/module.h"
#include "injector/inject_arch.h"
#include "injector/libc.h"

/**
 * Compares the loader's code with its file. PRB_ERROR_UNSUPPORTED if there is one; the process must
 * have no tracer, whose it would be. Where there is no file, nothing is known.
 */
struct prb_error *prb_traps_check(struct prb_modules *modules, const struct prb_inject_arch *arch,
				  const struct prb_libc *libc) PRB_MUST_CHECK;

#endif

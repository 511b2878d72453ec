/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Detects breakpoints that a killed debugger has left in the dynamic loader.
 *
 * Debuggers set one there to learn of each library that is loaded. If a debugger is killed while
 * the program runs, the breakpoint stays in the code, and the next loaded library kills the program
 * by an unhandled SIGTRAP.
 *
 * Threading: one thread at a time. Borrows the modules.
 */
#ifndef PRB_INJECTOR_LIBC_LOADER_BREAKPOINTS_H
#define PRB_INJECTOR_LIBC_LOADER_BREAKPOINTS_H

#include "base/error.h"
#include "dwarf/elf/module.h"
#include "injector/libc/libc.h"
#include "injector/arch/machine.h"

/** A breakpoint; valid during the call that gets it. */
struct prb_trap {
	uint64_t address;
	size_t length;	      /**< bytes of the instruction */
	uint64_t original;    /**< what the file has there, as a number */
	const char *function; /**< that it is in; NULL if that has no name */
};
typedef struct prb_error *prb_trap_handler(void *context, const struct prb_trap *trap);

/**
 * Compares the loader's code with its file, and gives @p handler each breakpoint, sixteen at most.
 * A debugger that traces the process may have set them itself. Without a file nothing is found.
 */
struct prb_error *prb_loader_breakpoints_find(struct prb_modules *modules,
					      const struct prb_machine *machine,
					      const struct prb_libc *libc,
					      prb_trap_handler *handler,
					      void *context) PRB_MUST_CHECK;

/** PRB_ERROR_UNSUPPORTED if there is one, with how to restore the code. */
struct prb_error *prb_loader_breakpoints_check(struct prb_modules *modules,
					       const struct prb_machine *machine,
					       const struct prb_libc *libc) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Loads a shared library into a running process without disturbing it.
 *
 * One thread of the target is hijacked for a fraction of a millisecond, at a place where it holds
 * no lock of the C library, and made to call pthread_create(); all else (dlopen(), a function of
 * the library) happens on that new thread while the program runs on. Where no such place is found,
 * or a rule forbids it, nothing is done and the error says which rule and what helps.
 * docs/injection.md explains every step.
 *
 * Should our own process be killed at any moment, the hijacked thread goes back to what it did by
 * itself, and the new thread ends and takes what it used along.
 *
 * Threading: one call at a time for one target, all from one thread of ours (a rule of ptrace).
 * During a call that thread has the highest priority that the system grants (base/urgent.h).
 */
#ifndef PRB_INJECTOR_INJECT_H
#define PRB_INJECTOR_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "dwarf/elf/module.h"
#include "target/ptrace/seccomp_calls.h"
#include "target/target.h"

struct prb_inject_request {
	const char *library;  /**< path as we see it */
	const char *symbol;   /**< function of the library to call, `intptr_t f(const char *)`; or
				 NULL */
	const char *argument; /**< given to it; NULL for "" */
	double timeout;	      /**< seconds for loading and calling; 0: ten */
	struct prb_modules *modules; /**< of the target, where the caller has them; or NULL */
	/** The library keeps itself open if it is to stay, or is closed when the symbol returns. */
	bool again;
	/** Only call the symbol of a library that is there already, as with `again`; it gives a
	 * handle to be closed, 0, or as a negative number why it is to stay. */
	bool unload;
};

struct prb_inject_result {
	bool already;	 /**< it was there before: nothing was done but a call of the symbol */
	bool absent;	 /**< it was not there to be unloaded: the same */
	bool unloaded;	 /**< it is gone */
	const char *way; /**< static: how the library's file was given to the target */
	pid_t hijacked;	 /**< thread that was hijacked */
	unsigned stops;	 /**< how often threads were stopped, in search of a safe point too */
	double pause_us; /**< how long the hijacked thread was stopped in all */
	uint64_t handle; /**< of dlopen() in the target */
	bool called;	 /**< the symbol was called */
	int64_t value;	 /**< what it returned */
};

/**
 * Loads request->library into the live process @p t. PRB_ERROR_UNSUPPORTED, …_PERMISSION,
 * …_FAILED for what is refused, untouched; PRB_ERROR_TIMEOUT when no thread could be hijacked
 * safely (untouched) or when loading goes on for longer than the timeout (the message says
 * which); PRB_ERROR_NO_PROCESS if it ended.
 */
struct prb_error *prb_inject(struct prb_target *t, const struct prb_inject_request *request,
			     struct prb_inject_result *ret) PRB_MUST_CHECK;

/**
 * Whether the seccomp filters of all threads of a live process allow the system calls of @p makers,
 * bits of enum prb_call_maker; prb_inject() asks that itself. Stops a thread that has filters for
 * an instant. PRB_ERROR_UNSUPPORTED names what they forbid, PRB_ERROR_PERMISSION: only root can see
 * it.
 */
struct prb_error *prb_inject_allowed(struct prb_target *t, unsigned makers) PRB_MUST_CHECK;

/**
 * The rules of prb_inject() for whom another way loads the agent @p library: nothing is changed.
 * Also refuses a process that does not see that file under its path.
 */
struct prb_error *prb_inject_check_other_way(struct prb_target *t,
					     const char *library) PRB_MUST_CHECK;

#endif

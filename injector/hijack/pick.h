/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The search for a thread that may be hijacked: which threads there are, what each waits for,
 * and whether filters of system calls allow what ours is to do.
 *
 * Threading: as of injector/inject.h. Ownership: borrows all from the caller.
 */
#ifndef PRB_INJECTOR_HIJACK_PICK_H
#define PRB_INJECTOR_HIJACK_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "dwarf/elf/module.h"
#include "dwarf/unwind/unwind.h"
#include "injector/hijack/hijack.h"
#include "injector/libc/libc.h"
#include "target/ptrace/seccomp_calls.h"
#include "target/target.h"

/** The calls of @p makers with that C library: both bits of enum prb_call_maker. */
unsigned prb_filters_calls(const struct prb_libc *libc, unsigned makers);

/**
 * Whether the seccomp filters of the stopped thread @p tid, which we trace, allow @p calls, bits of
 * enum prb_call_maker.
 */
struct prb_error *prb_filters_check(struct prb_target *t, pid_t tid, unsigned calls) PRB_MUST_CHECK;

/**
 * As above, for all threads, any of which may come to run the agent's code. Threads inherit
 * filters, so one thread is stopped and checked for all with the same number of filters.
 */
struct prb_error *prb_filters_check_all(struct prb_target *t, unsigned calls) PRB_MUST_CHECK;

/** A thread that may be hijacked; the lower its rank, the better. */
struct prb_candidate {
	pid_t tid;
	int rank;
};
struct prb_candidates {
	PRB_VEC(struct prb_candidate) list; /**< best first */
	bool running;			    /**< one of them is not asleep */
	size_t blocked; /**< threads left out since they sleep uninterruptibly */
};

/** Lists the threads by what each is doing. */
struct prb_error *prb_candidates_find(struct prb_target *t,
				      struct prb_candidates *ret) PRB_MUST_CHECK;

/**
 * The /proc files of an ended first thread are empty; any other thread's have it all. *ret: the
 * same process by another thread, owned by the caller; untouched where the first one lives.
 */
struct prb_error *prb_candidates_alive(struct prb_target *t,
				       struct prb_target **ret) PRB_MUST_CHECK;

/** Is it a system call that waits for what others do? @p number may be -1. */
bool prb_call_waits(uint16_t machine, long number);

/** The cost of a search for the target. */
struct prb_pick_cost {
	pid_t hijacked;	 /**< thread that was found */
	unsigned stops;	 /**< how often threads were stopped */
	double pause_us; /**< how long the found thread was stopped */
};

/** A search for a thread of the target that may be hijacked. All is borrowed from the caller. */
struct prb_pick {
	struct prb_target *t;
	struct prb_modules *modules;
	struct prb_unwinder *unwinder;
	const struct prb_libc *libc;
	struct prb_hijack *hijack;  /**< holds the thread that was found, stopped */
	struct prb_pick_cost *cost; /**< added to */
	unsigned calls; /**< that seccomp filters have to allow: bits of enum prb_call_maker */
};

/** Finds one and stops it. PRB_ERROR_TIMEOUT if none came to a safe place in time,
 * PRB_ERROR_UNSUPPORTED if none ever will; nothing was changed then. */
struct prb_error *prb_pick_thread(const struct prb_pick *search) PRB_MUST_CHECK;

/** Puts the thread back, and counts for how long it was stopped. */
struct prb_error *prb_pick_give_back(const struct prb_pick *search) PRB_MUST_CHECK;

#endif

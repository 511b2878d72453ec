/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Decides whether a stopped thread can be hijacked at its current place.
 *
 * It can if none of its frames is in code that holds a lock which pthread_create() needs, if it is
 * an ordinary thread of the C library that neither begins nor ends, and if it is not inside a
 * restartable sequence. A stack that cannot be unwound to its end is searched, from there on, for
 * any address in such code.
 *
 * A thread that is to call functions of the C library itself (PRB_HIJACK_CALL) must also be in a
 * system call, or outside of that library, and have room on its stack.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_INJECTOR_HIJACK_SAFE_POINT_H
#define PRB_INJECTOR_HIJACK_SAFE_POINT_H

#include "base/error.h"
#include "dwarf/elf/module.h"
#include "dwarf/unwind/unwind.h"
#include "injector/arch/arch.h"
#include "injector/libc/libc.h"

struct prb_safe_point {
	struct prb_modules *modules; /**< borrowed, like the rest */
	struct prb_unwinder *unwinder;
	const struct prb_libc *libc;
	const struct prb_machine *machine;
};

/** Where a stopped thread is. */
struct prb_place {
	struct prb_regs regs;
	bool in_call; /**< in a system call */
	long call;    /**< its number; -1 if there is none, or it is unknown */
	uint64_t arguments[6];
	uint64_t thread_pointer; /**< 0 if unknown */
};

enum { PRB_WAYS_OUT_MAX = 64 };

struct prb_verdict {
	const char *why; /**< NULL: it can be hijacked; else static text: "in malloc" */
	bool lasting;	 /**< waiting will not help */
	bool in_call;	 /**< it waits in a system call */
	/** Where its outermost unsafe function may return to, the likeliest first; empty if that
	 * is unknown. More than one only where there is no unwind information. */
	uint64_t ways_out[PRB_WAYS_OUT_MAX];
	size_t way_count;
};

/** Judges the thread @p tid by the place where it is stopped. */
struct prb_error *prb_safe_point_judge(const struct prb_safe_point *safe, pid_t tid,
				       const struct prb_place *place,
				       struct prb_verdict *ret) PRB_MUST_CHECK;

/** Judges a thread that we have stopped ourselves, which can be asked for more. */
struct prb_error *prb_safe_point_check(const struct prb_safe_point *safe,
				       const struct prb_inject_arch *arch, pid_t tid,
				       const struct prb_thread_state *state,
				       struct prb_verdict *ret) PRB_MUST_CHECK;

#endif

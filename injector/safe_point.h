/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Decides whether a stopped thread can be hijacked at its current place.
 *
 * It may if none of its frames is in code that holds a lock which pthread_create() needs, if it is
 * an ordinary thread of the C library that neither begins nor ends, and if it is not inside a
 * restartable sequence. A stack that cannot be unwound to its end is searched, from there on, for
 * any address in such code.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_INJECTOR_SAFE_POINT_H
#define PRB_INJECTOR_SAFE_POINT_H

#include "base/error.h"
#include "dwarf/elf/module.h"
#include "dwarf/unwind/unwind.h"
#include "injector/inject_arch.h"
#include "injector/libc.h"

struct prb_safe_point {
	struct prb_modules *modules; /**< borrowed, like the rest */
	struct prb_unwinder *unwinder;
	const struct prb_libc *libc;
	const struct prb_inject_arch *arch;
};

struct prb_verdict {
	const char *why;  /**< NULL: it may be borrowed; else static text: "in malloc" */
	bool lasting;	  /**< waiting will not help */
	uint64_t way_out; /**< where its outermost unsafe function returns to; 0 if unknown */
};

/** Judges the stopped thread. */
struct prb_error *prb_safe_point_check(const struct prb_safe_point *safe, pid_t tid,
				       const struct prb_thread_state *state,
				       struct prb_verdict *ret) PRB_MUST_CHECK;

#endif

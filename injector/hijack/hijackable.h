/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The threads of a target that a debugger may make call functions.
 *
 * The rules are those of injection (safe_point.h), applied to registers that the debugger gives,
 * and stricter, since the hijacked thread itself calls the C library (PRB_HIJACK_CALL). Nothing in
 * the target is changed.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_INJECTOR_HIJACK_HIJACKABLE_H
#define PRB_INJECTOR_HIJACK_HIJACKABLE_H

#include "base/error.h"
#include "injector/hijack/safe_point.h"
#include "injector/libc/loader_breakpoints.h"

/** Gets one thread; true: no more are wanted. */
typedef bool prb_hijackable_handler(void *context, pid_t tid, const struct prb_verdict *verdict);

/**
 * Judges each thread of a target that a debugger holds. PRB_ERROR_UNSUPPORTED for other targets,
 * an unknown processor, and programs without a dynamic C library.
 */
struct prb_error *prb_hijackable(struct prb_target *t, prb_hijackable_handler *handler,
				 void *context) PRB_MUST_CHECK;

/** Finds breakpoints that a killed debugger has left in the target's dynamic loader (traps.h). */
struct prb_error *prb_left_breakpoints(struct prb_target *t, prb_trap_handler *handler,
				       void *context) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Resumes a stopped thread up to an address and stops it there.
 *
 * It is stopped by a breakpoint of the processor that is a performance event of ours: the kernel
 * removes it when we end, however we end (those set by ptrace stay). Nor is SIGTRAP sent: the
 * event sends the thread a signal that is ignored where no handler is set for it, before it
 * executes another instruction. As its tracer we take that signal away; should we be killed
 * before, it is ignored.
 *
 * Threading: all calls for one thread come from the same thread of ours.
 */
#ifndef PRB_INJECTOR_HIJACK_RUN_TO_H
#define PRB_INJECTOR_HIJACK_RUN_TO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "target/ptrace/stop.h"

/**
 * Runs the thread, stopped and without a signal to deliver, until it reaches @p address or @p
 * timeout_ms pass; *reached says which. It is then in the stop of the breakpoint's signal, outside
 * of any system call, or in an event stop, or a group stop; all signals that came before were
 * delivered. PRB_ERROR_UNSUPPORTED where there is no such breakpoint (permission, a processor
 * without, all signals blocked): it is stopped, too. PRB_ERROR_TIMEOUT: it does not stop any more;
 * PRB_ERROR_NO_PROCESS: it has ended.
 */
struct prb_error *prb_run_to(struct prb_stop *stop, uint64_t address, int timeout_ms,
			     bool *reached) PRB_MUST_CHECK;

#endif

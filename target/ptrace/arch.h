/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Architecture-specific parts of stopping a thread. One file each in arch/, chosen by the
 * compiler's own macros.
 */
#ifndef PRB_TARGET_PTRACE_ARCH_H
#define PRB_TARGET_PTRACE_ARCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "target/task.h"
#include "target/regs.h"

/** General registers of a stopped thread that we trace. */
struct prb_error *prb_arch_registers(pid_t tid, struct prb_regs *ret) PRB_MUST_CHECK;

/**
 * Is this thread, which we trace, asleep in a system call? Called before it is interrupted; false
 * where the answer is not needed.
 */
bool prb_arch_in_call(pid_t tid);

/** Was the stopped thread asleep in a system call, which the stop ended or will start again? @p
 * in_call: what prb_arch_in_call() said. */
bool prb_arch_slept(pid_t tid, bool in_call);

/**
 * Fills, as task/TID/syscall does for a sleeping thread, the call that the stopped thread was
 * asleep in. Not all kernels show the call of a stopped thread. False if it was in none, or its
 * arguments are lost. @p in_call: what prb_arch_in_call() said.
 */
bool prb_arch_call(pid_t tid, bool in_call, struct prb_task *ret);

/** True if the stopped thread is about to return EINTR from a system call. @p in_call: what
 * prb_arch_in_call() said. */
bool prb_arch_call_interrupted(pid_t tid, bool in_call);

/** True if the kernel makes the stopped thread go on with its call by restart_syscall(). */
bool prb_arch_call_resumes(pid_t tid);

/**
 * Makes that call start again when the thread runs on. (Calls that the kernel restarts by itself
 * do not show as interrupted and are left to it.) False if that cannot be done.
 */
bool prb_arch_restart_call(pid_t tid);

#endif

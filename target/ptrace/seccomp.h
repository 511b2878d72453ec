/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Decides whether a thread's seccomp filters permit the calls that loading needs, with all
 * arguments that they can be made with. The filters are read from the kernel and evaluated here,
 * because a forbidden call could kill the thread.
 */
#ifndef PRB_TARGET_PTRACE_SECCOMP_H
#define PRB_TARGET_PTRACE_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "target/ptrace/seccomp_calls.h"

/**
 * Checks the filters of the stopped thread @p tid, which we trace, for the calls of @p makers, bits
 * of enum prb_call_maker. PRB_ERROR_UNSUPPORTED names the call that they forbid;
 * PRB_ERROR_PERMISSION if we may not read them.
 */
struct prb_error *prb_seccomp_check(pid_t tid, unsigned makers) PRB_MUST_CHECK;

/** Whether they forbid that call; false where we may not read them. */
bool prb_seccomp_forbids(pid_t tid, int number);

/** Checks one filter as prb_seccomp_check() does: @p code of @p count instructions. */
struct prb_error *prb_seccomp_judge(const struct sock_filter *code, size_t count,
				    unsigned makers) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Decides whether a thread's seccomp filters permit the calls that loading needs. The
 * filters are read from the kernel and evaluated here, because a forbidden call could kill the
 * thread.
 */
#ifndef PRB_PTRACE_SECCOMP_H
#define PRB_PTRACE_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/**
 * Checks the filters of the stopped thread @p tid, which we trace. PRB_ERROR_UNSUPPORTED names the
 * call that they forbid; PRB_ERROR_PERMISSION if we may not read them.
 */
struct prb_error *prb_seccomp_check(pid_t tid) PRB_MUST_CHECK;

/** The verdict of a filter on a call. A malformed filter kills, as the kernel would not have it.
 */
uint32_t prb_seccomp_run(const struct sock_filter *code, size_t count,
			 const struct seccomp_data *data);

#endif

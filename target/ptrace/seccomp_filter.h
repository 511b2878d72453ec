/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Evaluates a seccomp filter for all values that the arguments of a system call may have,
 * each given by two bounds. Finds every result that the kernel could get from the filter.
 *
 * If the bounds do not decide a branch, both sides are followed, each with narrowed bounds. Where
 * paths join, their bounds are united, so each instruction is evaluated once. The results found may
 * include impossible ones, but none is missed.
 */
#ifndef PRB_TARGET_PTRACE_SECCOMP_FILTER_H
#define PRB_TARGET_PTRACE_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** System calls of one number and of this machine's architecture, from any address. */
struct prb_seccomp_call {
	int number;
	struct {
		uint64_t low, high;
	} args[6];
};

/** Receives one result. @p low and @p high differ only if the filter calculates the result. */
typedef bool prb_seccomp_result(void *context, uint32_t low, uint32_t high);

/**
 * Calls @p each for all results, until it returns false. *ret: it never did. A filter that the
 * kernel would not accept results in a kill. The only error is a lack of memory.
 */
struct prb_error *prb_seccomp_results(const struct sock_filter *code, size_t count,
				      const struct prb_seccomp_call *call, prb_seccomp_result *each,
				      void *context, bool *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Connections of TCP by which somebody else may send an answer.
 *
 * Threading: that of the target.
 */
#ifndef PRB_JUDGE_CONNECTIONS_H
#define PRB_JUDGE_CONNECTIONS_H

#include "judge/judge.h"
#include "target/proc/subprocesses.h"

/**
 * Counts the established connections of the case's process that it has made itself, and whose other
 * end is neither its own nor that of one of @p descendants. 1 if they cannot be read.
 */
struct prb_error *prb_case_count_connections(const struct prb_case *c,
					     const struct prb_subprocesses *descendants,
					     size_t *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Whether a relative of a process has mapped the same memory: then it may wake a thread that
 * waits there.
 *
 * Threading: that of the target.
 */
#ifndef PRB_JUDGE_SHARING_H
#define PRB_JUDGE_SHARING_H

#include <stdbool.h>
#include <stdint.h>

#include "judge/judge.h"

/**
 * True if the parent, a child or a sibling has mapped the memory at @p address, too; also if that
 * cannot be found out.
 */
bool prb_case_shares(const struct prb_case *c, uint64_t address);

/** The same of the parent and the siblings alone. */
bool prb_case_shares_above(const struct prb_case *c, uint64_t address);

#endif

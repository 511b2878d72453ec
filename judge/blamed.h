/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Another process that a finding names as the cause.
 *
 * Threading: none of its own.
 */
#ifndef PRB_JUDGE_BLAMED_H
#define PRB_JUDGE_BLAMED_H

#include <stdbool.h>

#include "base/str.h"
#include "judge/judge.h"

/**
 * True if the process @p pid runs as the user of the case's process. What a process shows about
 * itself must not blame another user's with more than low confidence.
 */
bool prb_case_is_of_user(const struct prb_case *c, pid_t pid);

/** Appends "4711 python3". */
void prb_put_process(struct prb_str *s, pid_t pid);

#endif

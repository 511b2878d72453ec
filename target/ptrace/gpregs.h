/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file General registers of a traced, stopped thread. Their struct is the machine's. Threading: as
 * stop.h.
 */
#ifndef PRB_TARGET_PTRACE_GPREGS_H
#define PRB_TARGET_PTRACE_GPREGS_H

#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"

struct prb_error *prb_gpregs_read(pid_t tid, struct user_regs_struct *ret) PRB_MUST_CHECK;
struct prb_error *prb_gpregs_write(pid_t tid, const struct user_regs_struct *regs) PRB_MUST_CHECK;

#endif

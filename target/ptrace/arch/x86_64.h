/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Reads registers of an x86_64 thread. Threading: any thread. */
#ifndef PRB_TARGET_PTRACE_ARCH_X86_64_H
#define PRB_TARGET_PTRACE_ARCH_X86_64_H

#include <stdbool.h>
#include <sys/user.h>

/** Is it in a system call that the kernel will start again when it goes on from here? */
bool prb_x86_64_restarts(const struct user_regs_struct *regs);

#endif

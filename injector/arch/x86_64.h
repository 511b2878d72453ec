/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file How the state of a thread of x86_64 lies in struct prb_thread_state, and its way back. */
#ifndef PRB_INJECTOR_ARCH_X86_64_H
#define PRB_INJECTOR_ARCH_X86_64_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#include "injector/arch/arch.h"

/** DWARF numbers of the psABI. */
enum {
	PRB_X86_64_RBX = 3,
	PRB_X86_64_RBP = 6,
};

/** Places in the vector registers as XSAVE writes them. */
enum {
	PRB_XSAVE_LEGACY = 512,
	PRB_XSAVE_HEADER = 64,
};

_Static_assert(sizeof(struct user_regs_struct) <= PRB_THREAD_GENERAL_MAX, "room for registers");

static inline struct user_regs_struct *prb_x86_64_general(const struct prb_thread_state *state)
{
	return (struct user_regs_struct *)state->general;
}

/** `frame` and `find_store` of struct prb_inject_arch. */
void prb_x86_64_frame(const struct prb_thread_state *state, const struct prb_target_code *code,
		      struct prb_return_frame *ret);
bool prb_x86_64_find_store(const uint8_t *code, size_t length, struct prb_store_code *ret);

/** Sets the register by which the result of a call comes to the frame's slot. */
void prb_x86_64_set_store(const struct prb_return_frame *frame, struct user_regs_struct *regs);

#endif

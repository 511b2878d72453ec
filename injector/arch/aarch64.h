/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file How the state of a thread of aarch64 lies in struct prb_thread_state. */
#ifndef PRB_INJECTOR_ARCH_AARCH64_H
#define PRB_INJECTOR_ARCH_AARCH64_H

#include <stdint.h>
#include <sys/user.h>

#include "injector/arch/arch.h"

enum {
	PRB_AARCH64_NUMBER = 8, /**< register that has the number of a system call */
	PRB_AARCH64_LINK = 30,	/**< and where functions return to */
};

/** The contents of `general`. */
struct prb_aarch64_general {
	struct user_regs_struct regs;
	uint64_t tls;
	uint32_t code[2]; /* the instruction before the program counter, and the one there */
};
_Static_assert(sizeof(struct prb_aarch64_general) <= PRB_THREAD_GENERAL_MAX, "room for registers");

/** The header of the kernel's regsets of registers whose length differs between machines. */
struct prb_aarch64_scalable {
	uint32_t size, max_size;
	uint16_t length, max_length, flags, reserved;
};
enum { PRB_AARCH64_LONG = 1 }; /**< the registers follow in their full length */

/** The contents of `extended`: behind it, the rest of that regset, where the machine has it. */
struct prb_aarch64_vectors {
	struct {
		uint64_t registers[64];
		uint32_t status, control, reserved[2];
	} simd;
	struct prb_aarch64_scalable scalable;
};

static inline struct prb_aarch64_general *prb_aarch64_general(const struct prb_thread_state *state)
{
	return (struct prb_aarch64_general *)state->general;
}

static inline struct prb_aarch64_vectors *prb_aarch64_vectors(const struct prb_thread_state *state)
{
	return (struct prb_aarch64_vectors *)state->extended;
}

/** The processor's state without what a jump or a debugger was about to do: for other code. */
uint64_t prb_aarch64_plain(uint64_t state);

/** `find_store` and `frame` of struct prb_inject_arch. */
bool prb_aarch64_find_store(const uint8_t *code, size_t length, struct prb_store_code *ret);
void prb_aarch64_frame(const struct prb_thread_state *state, const struct prb_target_code *code,
		       struct prb_return_frame *ret);

#endif

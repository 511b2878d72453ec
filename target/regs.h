/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The registers an unwinder needs, by DWARF number, with which of them are known.
 *
 * Without a stop, only pc and sp of a sleeping thread are known (/proc/PID/task/TID/syscall);
 * unwinding goes on as long as no rule needs an unknown register.
 */
#ifndef PRB_TARGET_REGS_H
#define PRB_TARGET_REGS_H

#include <stdbool.h>
#include <stdint.h>

/* x86_64: 0–15 rax rdx rcx rbx rsi rdi rbp rsp r8–r15 (psABI order), 16 return address.
 * aarch64: 0–30 x0–x30, 31 sp, 34 RA_SIGN_STATE. */
enum {
	PRB_REG_X86_64_RSP = 7,
	PRB_REG_X86_64_RA = 16,
	PRB_REG_AARCH64_LR = 30,
	PRB_REG_AARCH64_SP = 31,
	PRB_REG_AARCH64_SIGN_STATE = 34,
	PRB_REG_COUNT = 35,
};

struct prb_regs {
	uint16_t machine; /**< EM_X86_64 or EM_AARCH64 */
	uint64_t pc;
	uint64_t known;		 /**< bit N: value[N] is valid */
	uint64_t thread_pointer; /**< only of what a debugger holds; 0 if unknown */
	uint64_t value[PRB_REG_COUNT];
};

static inline bool prb_regs_get(const struct prb_regs *regs, unsigned number, uint64_t *ret)
{
	if (number >= PRB_REG_COUNT || !(regs->known >> number & 1))
		return false;
	*ret = regs->value[number];
	return true;
}

static inline void prb_regs_set(struct prb_regs *regs, unsigned number, uint64_t value)
{
	if (number >= PRB_REG_COUNT)
		return;
	regs->value[number] = value;
	regs->known |= 1ULL << number;
}

static inline void prb_regs_forget(struct prb_regs *regs, unsigned number)
{
	if (number < PRB_REG_COUNT)
		regs->known &= ~(1ULL << number);
}

/** DWARF numbers of the stack pointer, and of the register that compilers use as frame pointer. */
unsigned prb_regs_sp(uint16_t machine);
unsigned prb_regs_fp(uint16_t machine);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The C stack of one thread: its frames as numbers, without any names.
 *
 * Threading: one thread at a time. A reused stack keeps its memory.
 */
#ifndef PRB_DUMP_NATIVE_C_STACK_H
#define PRB_DUMP_NATIVE_C_STACK_H

#include "base/error.h"
#include "base/vec.h"
#include "dwarf/unwind/unwind.h"
#include "target/mem/mem.h"
#include "target/regs.h"

struct prb_c_frame {
	uint64_t pc;
	uint64_t low, high; /**< its part of the stack: stack pointer and canonical frame address */
	bool exact;	    /**< pc is where it executes, not a return address */
	bool guess; /**< its caller was found by the frame pointer; frames between may be missing */
	bool trampoline; /**< made by CPython for perf, around the eval loop of a Python call */
	bool signal;	 /**< the kernel's return trampoline of a signal handler */
};

struct prb_c_stack {
	PRB_VEC(struct prb_c_frame) frames; /**< innermost first */
	const char *reason;		    /**< why the stack ends early; owned by the unwinder */
	const char *trouble;		    /**< the same without an address, static */
};

/** An address within the instruction that executes, or within the call instruction. */
static inline uint64_t prb_c_frame_code(const struct prb_c_frame *frame)
{
	return frame->exact ? frame->pc : frame->pc - 1;
}

/** Unwinds from @p regs, reading through @p mem. Errors as those of prb_unwind_step(). */
struct prb_error *prb_c_stack_walk(struct prb_unwinder *unwinder, struct prb_mem *mem,
				   const struct prb_regs *regs,
				   struct prb_c_stack *ret) PRB_MUST_CHECK;
void prb_c_stack_deinit(struct prb_c_stack *stack);

#endif

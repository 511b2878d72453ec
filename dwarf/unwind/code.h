/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Facts about frames from machine code: the call behind a return address, and how much stack
 * a function takes. Internal to dwarf/unwind/.
 *
 * Only what compilers write is understood; anything else is "not known", never an assumption.
 * Nothing is allocated. The bytes are hostile and every loop is bounded.
 */
#ifndef PRB_DWARF_UNWIND_CODE_H
#define PRB_DWARF_UNWIND_CODE_H

#include "dwarf/unwind/cfi.h"

/** A stretch of code, [start, end). */
struct prb_code_range {
	uint64_t start, end;
};

enum prb_call_kind {
	PRB_CALL_NONE,	   /**< no call instruction ends there */
	PRB_CALL_INDIRECT, /**< through a register or through memory that may have changed */
	PRB_CALL_DIRECT,   /**< to `target`, which is in the code or in the linker's table */
};

struct prb_call {
	enum prb_call_kind kind;
	uint64_t target; /**< of a direct call: the function, stubs of the linker passed */
	bool indirect;	 /**< the bytes before may as well be an indirect call */
};

/** The call instruction that ends right before @p return_address. */
void prb_code_call_before(const struct prb_cfi_memory *memory, uint16_t machine,
			  uint64_t return_address, struct prb_call *ret);

struct prb_frame_size {
	bool known;	/**< `bytes` is what the prologue takes */
	bool dynamic;	/**< the function moves its stack pointer by amounts made at run time */
	uint64_t bytes; /**< from the stack pointer after the prologue to the CFA */
	uint64_t body;	/**< address behind what takes from the stack */
};

/** Frame of a function that begins at @p function.start and sets up a frame pointer. */
void prb_code_frame_size(const struct prb_cfi_memory *memory, uint16_t machine,
			 const struct prb_code_range *function, struct prb_frame_size *ret);

/**
 * Bytes of arguments that a function of fixed size has on the stack when it executes the
 * instruction that holds @p pc; false if that is not known. Compilers push and drop them within a
 * stretch of code without jumps.
 */
bool prb_code_pushed_arguments(const struct prb_cfi_memory *memory, uint16_t machine,
			       const struct prb_code_range *function,
			       const struct prb_frame_size *frame, uint64_t pc, uint64_t *bytes);

/**
 * Where a jump in @p from leads into @p into: its target, or 0 if there is none. A jump to the
 * start is a call in tail position, one to elsewhere goes to a part that was split off.
 */
uint64_t prb_code_jump_into(const struct prb_cfi_memory *memory, uint16_t machine,
			    const struct prb_code_range *from, const struct prb_code_range *into);

/** Bytes of the x86_64 instruction at @p code; 0 if it is none, or over @p size bytes long. */
unsigned prb_code_x86_64_length(const uint8_t *code, size_t size);

#endif

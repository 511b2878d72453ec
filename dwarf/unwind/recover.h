/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The frame address of a function whose frame pointer is not known. Internal to
 * dwarf/unwind/.
 *
 * Without a stop, only pc and sp of a sleeping thread are known. That is enough until a frame is
 * met whose rule needs the frame pointer: rbp, x29. Its value can mostly be proven:
 *
 * - A function that moves its stack pointer by fixed amounts only has a frame of fixed size,
 *   which its prologue determines; a return address, preceded by a call, must then be at that
 *   place.
 * - Otherwise the return address is looked for on the stack. It must lie behind a call to just
 *   this function, and be the only such one: what earlier calls have left there looks the same.
 *
 * Nothing is guessed: where two answers are possible there is none.
 */
#ifndef PRB_DWARF_UNWIND_RECOVER_H
#define PRB_DWARF_UNWIND_RECOVER_H

#include "dwarf/unwind/cfi.h"
#include "dwarf/unwind/code.h"

/** How recovery asks the unwinder; the functions give false for what is not known. */
struct prb_recovery {
	const struct prb_cfi_memory *memory;
	uint64_t pac_mask;
	void *context;
	/** The function (all that one FDE covers) that holds @p pc. */
	bool (*function)(void *context, uint64_t pc, struct prb_code_range *ret);
	/** Leaves a frame that is in a call; *end: it is the outermost one. */
	bool (*step)(void *context, struct prb_regs *regs, uint64_t *cfa, bool *end);
};

/**
 * Adds the frame pointer to @p regs, those of a frame at @p pc whose row @p row cannot be applied
 * for want of it. PRB_CFI_UNKNOWN_REGISTER if it cannot be proven.
 */
enum prb_cfi_status prb_recover_frame_pointer(const struct prb_recovery *recovery,
					      const struct prb_cfi_row *row, uint64_t pc,
					      struct prb_regs *regs) PRB_MUST_CHECK;

#endif

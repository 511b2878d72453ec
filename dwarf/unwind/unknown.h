/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Leaving a frame of code that has no call frame information, as compilers make at run time.
 * Internal to dwarf/unwind/.
 *
 * The code that CPython writes for perf (`-X perf`) is known by its bytes. Of other code the frame
 * pointer is believed if it leads to a return address that lies behind a call: that is a guess,
 * since not all functions have one, and such frames are passed over.
 */
#ifndef PRB_DWARF_UNWIND_UNKNOWN_H
#define PRB_DWARF_UNWIND_UNKNOWN_H

#include "dwarf/unwind/cfi.h"

/** PRB_CFI_NOT_FOUND, with @p regs unchanged, if there is no way. @p guess: it is not certain. */
enum prb_cfi_status prb_cfi_leave_unknown(const struct prb_cfi_memory *memory, bool exact_pc,
					  struct prb_regs *regs, uint64_t *cfa, bool *guess);

#endif

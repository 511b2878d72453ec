/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The native unwinder: from the registers of a frame to those of its caller, by the call
 * frame information (CFI) of the module that holds the pc.
 *
 * For each step one FDE is found by binary search in `.eh_frame_hdr` (or a sorted scan of
 * `.debug_frame` / `.eh_frame` without header) and only its program is interpreted. The CFI bytes
 * come from the target's own memory where they are mapped, else from the module's file or its
 * separate debug file. Nothing is guessed: where there is no CFI the walk ends with a reason.
 *
 * The core (cfi.h) works on plain byte buffers with no allocation, no locks and no libc calls but
 * memcpy, so that it can run in a signal handler; this header is the convenient face over modules.
 *
 * Threading: an unwinder belongs to one thread at a time.
 */
#ifndef PRB_DWARF_UNWIND_UNWIND_H
#define PRB_DWARF_UNWIND_UNWIND_H

#include "base/error.h"
#include "dwarf/elf/module.h"
#include "target/mem/mem.h"
#include "target/regs.h"

struct prb_unwinder;

/**
 * Borrows @p modules, which must outlive it. It keeps what it has found out about them, so a
 * target that has loaded or unloaded libraries needs a new unwinder with the new modules.
 */
struct prb_error *prb_unwinder_create(struct prb_modules *modules,
				      struct prb_unwinder **ret) PRB_MUST_CHECK;
void prb_unwinder_destroy(struct prb_unwinder *unwinder);

/**
 * aarch64: the bits of a return address that a signature occupies (NT_ARM_PAC_MASK of the thread,
 * its mask for instructions). By default, all above the target's highest mapped address.
 */
void prb_unwinder_set_pac_mask(struct prb_unwinder *unwinder, uint64_t mask);

/**
 * Has the CFI of the module at @p address read from its file, which is opened for that, if it has
 * one with a build-id: later steps there then read nothing of the target but the stack. For callers
 * that have time now and none later; without it memory is asked first. PRB_ERROR_NOMEM only.
 */
struct prb_error *prb_unwinder_use_file(struct prb_unwinder *unwinder,
					uint64_t address) PRB_MUST_CHECK;

/**
 * As above, for each module from now on, when it is first met: for callers that unwind repeatedly,
 * and may go on when the process has ended.
 */
void prb_unwinder_prefer_files(struct prb_unwinder *unwinder);

/**
 * From now on frames of code without CFI are left as dwarf/unwind/unknown.h can: by the frame
 * pointer, if need be, which is a guess and reported as one.
 */
void prb_unwinder_allow_guesses(struct prb_unwinder *unwinder);

/**
 * Where the function at @p address begins, by its FDE: for code without a symbol. 0 if none covers
 * it. A part of a function that the compiler has split off begins by itself.
 */
struct prb_error *prb_unwinder_function(struct prb_unwinder *unwinder, uint64_t address,
					uint64_t *ret) PRB_MUST_CHECK;

struct prb_unwind_step {
	uint64_t cfa;	     /**< canonical frame address of the frame that was left, if it was */
	bool signal_frame;   /**< the frame left was a signal trampoline: the caller's pc is exact,
				not a return address */
	bool trampoline;     /**< the frame left was CPython's perf trampoline, around the
				eval loop of one Python call */
	bool guess;	     /**< it was left by its frame pointer: callers may be missing */
	bool end;	     /**< the frame is the outermost one (return address undefined or 0):
				the walk is complete and the registers are unchanged */
	const char *reason;  /**< if the walk cannot go on: why, text that is valid until the
				unwinder's next step; else NULL */
	const char *trouble; /**< the same without a place, static */
};

/**
 * Replaces @p regs by those of the calling frame. Stack and CFI are read through @p mem.
 * @p exact_pc: regs->pc is where the frame is executing (innermost frame, or below a signal
 * frame), not a return address.
 * Not being able to go on (no CFI, a needed register is unknown, unreadable stack, pc outside any
 * module, no progress) is not an error: `reason` says it and @p regs is unchanged. Memory that
 * cannot be read is no error either, also if it is a sealed view that lacks the page (ask
 * prb_view_misses()). Errors are those of reading at all (PRB_ERROR_NO_PROCESS, …_PERMISSION,
 * …_OS) and PRB_ERROR_NOMEM.
 *
 * A frame that executes where no code is, because a bad function pointer was called, is left by its
 * return address if that lies in a module. The number of frames is for the caller to bound: an
 * endless walk is prevented only as far as frame addresses must grow but for a few switches of
 * stacks.
 */
struct prb_error *prb_unwind_step(struct prb_unwinder *unwinder, struct prb_mem *mem, bool exact_pc,
				  struct prb_regs *regs,
				  struct prb_unwind_step *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Names of code that a process makes at run time, from GDB's JIT interface: a list of ELF
 * images in the memory of the target, which LLVM keeps (numba, Triton, Julia).
 *
 * The list and the images are the target's word: nothing is believed of them but names, all lengths
 * and counts are bounded, and the list may be changing. Nothing is executed or written there.
 *
 * Threading: one thread at a time. Internal to profile/native/.
 */
#ifndef PRB_PROFILE_NATIVE_JIT_ENTRIES_H
#define PRB_PROFILE_NATIVE_JIT_ENTRIES_H

#include "base/error.h"
#include "base/map.h"
#include "dwarf/elf/module.h"
#include "profile/native/perf_map.h"

/** It starts as {}, but for prb_jit_entries_init(). */
struct prb_jit_entries {
	struct prb_perf_map names;   /**< with the path "JIT" */
	struct prb_number_map known; /**< images that were read, by where they are */
	uint64_t read;		     /**< bytes of them */
	PRB_VEC(uint64_t) lists;     /**< addresses of the descriptors, of all modules */
	size_t modules;		     /**< so many were looked for descriptors */
};

void prb_jit_entries_init(struct prb_jit_entries *jit);
void prb_jit_entries_deinit(struct prb_jit_entries *jit);

/** Reads images that were added since. @p modules: the present ones. PRB_ERROR_NOMEM only. */
struct prb_error *prb_jit_entries_update(struct prb_jit_entries *jit,
					 struct prb_modules *modules) PRB_MUST_CHECK;

/** Takes the functions of one image, at the addresses that its sections have. */
struct prb_error *prb_jit_entries_take(struct prb_jit_entries *jit, const uint8_t *image,
				       size_t size) PRB_MUST_CHECK;

#endif

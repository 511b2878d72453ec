/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The code objects that were met: each is read once, and then known for as long as it lives.
 *
 * A frame names its code object by address. An address is believed only while the object there
 * consists of what it did (see python/frames/code_identity.h), which is compared at each sample, at
 * its own instant. Data from memory that might have changed is kept only when it is proven that it
 * did not.
 *
 * Threading: one thread at a time. Borrows the tree.
 */
#ifndef PRB_PROFILE_SAMPLER_CODES_H
#define PRB_PROFILE_SAMPLER_CODES_H

#include <stdbool.h>

#include "base/error.h"
#include "python/python.h"
#include "profile/recording/tree.h"

struct prb_codes;

struct prb_error *prb_codes_create(struct prb_tree *tree, struct prb_codes **ret) PRB_MUST_CHECK;
void prb_codes_destroy(struct prb_codes *codes);

/** All stacks are calls from @p stack from now on, which is none at first. */
void prb_codes_root(struct prb_codes *codes, uint32_t stack);
/**
 * From now on, the first variable of functions that run a module of torch (`forward`,
 * `_call_impl`) or an optimizer (`step`) is noted as their subject, which tells them apart. Frames
 * within torch.no_grad() and the like have subjects of their own (profile/recording/tree.h).
 */
void prb_codes_watch_modules(struct prb_codes *codes);

/** Forgets the frames that were noted, and what was learnt with them and not kept. */
void prb_codes_begin(struct prb_codes *codes);

/**
 * Notes the frames of one thread, read through @p mem, whose memory does not change, or is proven
 * later not to have. A code that cannot be read is noted as such. Errors are about memory of ours.
 */
struct prb_error *prb_codes_note(struct prb_codes *codes, struct prb_python *py,
				 struct prb_mem *mem,
				 const struct prb_py_frames *frames) PRB_MUST_CHECK;

/** True if a code object was read for what was noted: it is proven only if it still is the same. */
bool prb_codes_has_new(const struct prb_codes *codes);

/** As prb_codes_note(), one frame that is not on the thread's own stack, after all that are. */
struct prb_error *prb_codes_note_other(struct prb_codes *codes, struct prb_python *py,
				       struct prb_mem *mem,
				       const struct prb_py_frame *frame) PRB_MUST_CHECK;

/**
 * True if the frame at that address was noted for the thread's own stack; its index, unless @p ret
 * is NULL.
 */
bool prb_codes_find(const struct prb_codes *codes, uint64_t address, size_t *ret);

/**
 * The tree's frames for what was noted since prb_codes_begin(), innermost first, valid until the
 * next call. All of that is kept: it was proven.
 */
struct prb_error *prb_codes_keep_frames(struct prb_codes *codes,
					const uint32_t **ret) PRB_MUST_CHECK;

/** The frames made by prb_codes_keep_frames(), or prb_codes_keep(); others from *ret_others on. */
const uint32_t *prb_codes_kept_frames(const struct prb_codes *codes, size_t *ret_others);

/** The stack of what was noted since prb_codes_begin(), all of which is kept: it was proven. */
struct prb_error *prb_codes_keep(struct prb_codes *codes, uint32_t *ret_stack) PRB_MUST_CHECK;

#endif

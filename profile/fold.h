/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Stacks that differ only by the lines that ran are one stack where lines are not wanted.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_PROFILE_FOLD_H
#define PRB_PROFILE_FOLD_H

#include <stdbool.h>

#include "base/error.h"
#include "profile/tree.h"

/**
 * For each stack of @p tree the number of the one that stands for it: the first with the same
 * functions, or, with @p lines, itself. That of its caller stands for the caller. Caller frees.
 */
struct prb_error *prb_fold_stacks(const struct prb_tree *tree, bool lines,
				  uint32_t **ret) PRB_MUST_CHECK;

/** The frames of a stack, outermost first; tree->stacks.items[stack].depth of them. Caller frees.
 */
struct prb_error *prb_fold_frames(const struct prb_tree *tree, uint32_t stack,
				  uint32_t **ret) PRB_MUST_CHECK;

#endif

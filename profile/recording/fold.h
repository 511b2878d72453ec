/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Stacks that differ only by the lines that ran are one stack where lines are not wanted.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_PROFILE_RECORDING_FOLD_H
#define PRB_PROFILE_RECORDING_FOLD_H

#include <stdbool.h>

#include "base/error.h"
#include "profile/recording/tree.h"

/**
 * For each stack of @p tree the number of its representative: the first with the same functions,
 * or, with @p lines, itself. The caller's representative is the representative's caller. Caller
 * frees.
 */
struct prb_error *prb_fold_stacks(const struct prb_tree *tree, bool lines,
				  uint32_t **ret) PRB_MUST_CHECK;

/** A function, or, where lines are wanted, a line of one. Places have numbers from 0 on. */
struct prb_place {
	const struct prb_tree_function *function;
	int32_t line; /**< that ran, or where the function is defined; <= 0 if unknown */
	bool ran;     /**< lines are wanted: it is the line that ran */
};

size_t prb_place_count(const struct prb_tree *tree, bool lines);
struct prb_place prb_place_get(const struct prb_tree *tree, bool lines, uint32_t place);

/** The number of the place of the innermost frame of a stack, not the empty one. */
uint32_t prb_place_of(const struct prb_tree *tree, bool lines, uint32_t stack);

/** The places of a stack, outermost first; tree->stacks.items[stack].depth of them. Caller frees.
 */
struct prb_error *prb_fold_places(const struct prb_tree *tree, bool lines, uint32_t stack,
				  uint32_t **ret) PRB_MUST_CHECK;

#endif

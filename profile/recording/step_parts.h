/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which part of a training step a stack belongs to.
 *
 * Parts nest: an optimizer's step() may call a closure that runs the model and its backward, and
 * backward may run modules again. A stack is followed from its outermost frame on, and each frame
 * may change the part, by rules about the files of torch.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_PROFILE_RECORDING_STEP_PARTS_H
#define PRB_PROFILE_RECORDING_STEP_PARTS_H

#include <stdbool.h>

#include "profile/recording/tree.h"

/** In the order in which they are shown. */
enum prb_step_part {
	PRB_STEP_FORWARD,
	PRB_STEP_BACKWARD,
	PRB_STEP_OPTIMIZER,
	PRB_STEP_EVALUATION, /**< forward while no gradients are recorded */
	PRB_STEP_DATA,
	PRB_STEP_COMMUNICATION,
	PRB_STEP_COMPILING,
	PRB_STEP_OTHER,
	PRB_STEP_PARTS,
};

/** "forward", …, "evaluation (no gradient)", "data loading", "communication", "other". */
const char *prb_step_part_name(enum prb_step_part part);

/** Where the frames so far have led. Begins as PRB_STEP_WALK. */
struct prb_step_walk {
	enum prb_step_part part;
	bool fixed;	  /**< the part stays, whatever is called */
	bool stepping;	  /**< in an optimizer's step(), or in its closure */
	bool no_gradient; /**< a `with` statement has turned gradients off */
};
#define PRB_STEP_WALK ((struct prb_step_walk){.part = PRB_STEP_OTHER})

/** How a frame is known beyond its function. */
enum prb_step_frame {
	PRB_STEP_FRAME_PLAIN,
	PRB_STEP_FRAME_MODULE,	/**< runs a module */
	PRB_STEP_FRAME_CLOSURE, /**< a closure that the program has given to the optimizer */
};

/** The next frame inwards. */
void prb_step_walk(struct prb_step_walk *walk, const struct prb_tree_function *function,
		   enum prb_step_frame frame);

/**
 * True if the function may be a closure, called where @p walk has led to: one outside of torch that
 * an optimizer calls, and no step() itself.
 */
bool prb_step_may_be_closure(const struct prb_step_walk *walk,
			     const struct prb_tree_function *function);

/** True for a step() of an optimizer, whose subject tells several of them apart. */
bool prb_step_is_optimizer(const struct prb_tree_function *function);

#endif

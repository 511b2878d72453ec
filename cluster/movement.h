/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Changes of a rank between looks. Any thread; nothing is allocated. */
#ifndef PRB_CLUSTER_MOVEMENT_H
#define PRB_CLUSTER_MOVEMENT_H

#include <stdbool.h>

#include "cluster/look.h"

enum prb_movement {
	PRB_STILL,   /**< the same stack, and the main thread used no processor to speak of */
	PRB_SPINS,   /**< the same stack, and the main thread never slept: a loop in C */
	PRB_MOVES,   /**< another stack, or it computes and sleeps in turn */
	PRB_UNKNOWN, /**< it could not be read both times */
};

/** Of rank @p i of the job, over @p count looks, at least two. */
enum prb_movement prb_movement(const struct prb_round *rounds, size_t count, size_t i);

#endif

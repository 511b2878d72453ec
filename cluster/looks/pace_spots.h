/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file How often a rank was seen where, over many looks. One thread at a time. */
#ifndef PRB_CLUSTER_LOOKS_PACE_SPOTS_H
#define PRB_CLUSTER_LOOKS_PACE_SPOTS_H

#include "base/error.h"
#include "base/vec.h"

/** The most spots that are kept for one rank; later ones count as "elsewhere". */
enum { PRB_MAX_SPOTS = 256 };

/** A function that the rank was in, outside of collectives. */
struct prb_spot {
	char *name; /**< "Net.forward train.py" */
	long count;
};

struct prb_pace {
	long looks;	/**< at which it could be read */
	long waiting;	/**< of these, in a collective */
	double seconds; /**< over which they were had; 0: unknown */
	long steps;	/**< of training that the rank made meanwhile; -1: unknown */
	PRB_VEC(struct prb_spot) spots;
};

/** Counts @p count looks at a spot; the name is copied. */
struct prb_error *prb_pace_count(struct prb_pace *pace, const char *name,
				 long count) PRB_MUST_CHECK;

/** NULL is none. */
void prb_pace_destroy(struct prb_pace *pace);

#endif

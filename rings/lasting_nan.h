/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The watched expressions of a process that are NaN, in all their last rows of
 * python.variables: a loss that is NaN does not become a number again.
 *
 * Threading: as the target's. Rows are as little to be trusted as the process that wrote them.
 */
#ifndef PRB_RINGS_LASTING_NAN_H
#define PRB_RINGS_LASTING_NAN_H

#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"

/** A watched expression. Names are cut. */
struct prb_lasting_nan {
	char name[64], function[64];
	int64_t step;	 /**< of the first row that is NaN, as all after it */
	uint64_t count;	 /**< of these rows; 0: the last one is a number */
	uint64_t before; /**< rows before them that are in the ring */
};

struct prb_lasting_nans {
	PRB_VEC(struct prb_lasting_nan)
	list; /**< all expressions, in the order of their first rows */
};

/** Rings that cannot be read are left out. */
struct prb_error *prb_lasting_nans_find(struct prb_target *target,
					struct prb_lasting_nans *ret) PRB_MUST_CHECK;
void prb_lasting_nans_deinit(struct prb_lasting_nans *nans);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The bytes of one object, as a census (census.h) counts them: its own, with the collector's
 * head, and what it alone owns. The objects that it refers to are not looked at.
 *
 * A buffer counts as large as its object says, also where a snapshot has no contents of it. A
 * tensor has its whole storage, also if others share that, and not its gradient.
 *
 * Threading: one thread at a time. The memory must be of one instant; the types that were met are
 * kept, so what belongs to another instant needs another measure. Errors: as mem.h, and
 * PRB_ERROR_BAD_DATA for what is no object.
 */
#ifndef PRB_VALUES_CENSUS_SIZE_H
#define PRB_VALUES_CENSUS_SIZE_H

#include "values/census/census.h"

struct prb_measure;
/** Everything passed in must outlive the measure. */
struct prb_error *prb_measure_create(struct prb_python *py, struct prb_mem *mem,
				     struct prb_measure **ret) PRB_MUST_CHECK;
/** NULL is allowed. */
void prb_measure_destroy(struct prb_measure *measure);

struct prb_error *prb_measure_object(struct prb_measure *measure, uint64_t object,
				     uint64_t *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How many steps an optimizer of torch has made, as its own state counts them.
 *
 * Adam, AdamW and others keep a step for each parameter: a number, or a tensor on the CPU. SGD and
 * others do not count.
 *
 * Threading: as census.h.
 */
#ifndef PRB_VALUES_CENSUS_TORCH_STEPS_H
#define PRB_VALUES_CENSUS_TORCH_STEPS_H

#include "values/census/census.h"

/** The step of the optimizer object at @p optimizer. PRB_ERROR_NOT_FOUND if it does not count. */
struct prb_error *prb_torch_steps(struct prb_python *py, struct prb_mem *mem, uint64_t optimizer,
				  uint64_t *ret) PRB_MUST_CHECK;

/**
 * The address of the first optimizer that counts its steps; 0: none does. Contents of objects are
 * read from @p mem.
 */
struct prb_error *prb_torch_counter(struct prb_census *census, struct prb_python *py,
				    struct prb_mem *mem, uint64_t *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The main interpreters of a process, for reading what Python modules have in their
 * variables.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_VALUES_INTERPRETERS_H
#define PRB_VALUES_INTERPRETERS_H

#include <stdint.h>

#include "base/error.h"
#include "python/python.h"
#include "target/mem/mem.h"
#include "target/target.h"

/** An interpreter whose objects can be read. */
struct prb_inside {
	struct prb_python *py;
	struct prb_mem *mem;
	uint64_t interp;
};

typedef struct prb_error *prb_inside_reader(void *context, const struct prb_inside *inside);

/**
 * Calls @p read for each. Data that changes during the reading, or is missing, is no error: then
 * less was read. @p pythons: those of the target; NULL or none: they are looked for.
 * PRB_ERROR_NOMEM is the only error.
 */
struct prb_error *prb_inside_each(struct prb_target *target, const struct prb_pythons *pythons,
				  prb_inside_reader *read, void *context) PRB_MUST_CHECK;

/** The object that an expression (values/expression.h) of modules is; 0: none. */
struct prb_error *prb_inside_find(const struct prb_inside *inside, const char *expression,
				  uint64_t *ret) PRB_MUST_CHECK;

#endif

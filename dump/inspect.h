/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What an expression means in a frame of a target, and what lies at an address. See
 * values/expression.h for what is understood.
 *
 * Threading: one thread at a time. Of a process that runs, the threads that run may be stopped for
 * microseconds (dump/tasks/consistent_read.h).
 */
#ifndef PRB_DUMP_INSPECT_H
#define PRB_DUMP_INSPECT_H

#include "base/str.h"
#include "python/repr/core/repr.h"
#include "target/target.h"

struct prb_inspected {
	struct prb_str type;  /**< name of its type */
	struct prb_str value; /**< repr(), shortened */
	uint64_t address;     /**< 0: it is no object of the target (a length, a number in C) */
	bool changed;	      /**< the target changed it while it was read, again and again */
};

/**
 * Looks in Python frame @p depth (0: innermost) of thread @p tid (0: the main one). Where that has
 * no frames, only names of modules mean something.
 */
struct prb_error *prb_inspect(struct prb_target *target, pid_t tid, unsigned depth,
			      const char *expression, const struct prb_repr_options *options,
			      struct prb_inspected *ret) PRB_MUST_CHECK;

/** The expressions that @p prefix may become there, one on a line, as prb_python_names() has them,
 * as the value. */
struct prb_error *prb_inspect_names(struct prb_target *target, pid_t tid, unsigned depth,
				    const char *prefix, struct prb_inspected *ret) PRB_MUST_CHECK;

/** Reads the object at @p address; PRB_ERROR_FAULT or BAD_DATA where none is, and
 * PRB_ERROR_UNSUPPORTED for a target that runs. */
struct prb_error *prb_inspect_address(struct prb_target *target, uint64_t address,
				      const struct prb_repr_options *options,
				      struct prb_inspected *ret) PRB_MUST_CHECK;

void prb_inspected_deinit(struct prb_inspected *object);

#endif

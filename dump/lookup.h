/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Evaluates expressions in a frame, and describes objects by address, in a target that does
 * not run: a core file, a snapshot, or a process stopped in a debugger. See
 * python/frames/expression.h for what is understood.
 */
#ifndef PRB_DUMP_LOOKUP_H
#define PRB_DUMP_LOOKUP_H

#include "base/str.h"
#include "python/repr/object.h"
#include "target/target.h"

struct prb_found_object {
	struct prb_str type;  /**< name of its type */
	struct prb_str value; /**< repr(), shortened */
	uint64_t address;
};

/**
 * Looks in Python frame @p depth (0: innermost) of thread @p tid. PRB_ERROR_UNSUPPORTED for a
 * target that runs, since what is found might be gone before it is read.
 */
struct prb_error *prb_lookup(struct prb_target *target, pid_t tid, unsigned depth,
			     const char *expression, const struct prb_repr_options *options,
			     struct prb_found_object *ret) PRB_MUST_CHECK;

/** The same of the object at @p address; PRB_ERROR_FAULT or BAD_DATA where none is. */
struct prb_error *prb_lookup_address(struct prb_target *target, uint64_t address,
				     const struct prb_repr_options *options,
				     struct prb_found_object *ret) PRB_MUST_CHECK;

void prb_found_object_deinit(struct prb_found_object *object);

#endif

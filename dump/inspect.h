/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Evaluates an expression in a frame of a target, or decodes the object at an address.
 * values/expression.h has the syntax.
 *
 * Threading: one thread at a time. Running threads of a live process may be stopped for
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
	uint64_t address;     /**< 0: not an object of the target (a length, a number in C) */
	/** Where the first name was found, if in no frame that was named: "train() train.py:12
	 * (frame 3)", or "__main__". Empty: in the innermost frame, or as builtin or module. */
	struct prb_str found_in;
	/** The class whose __getattribute__ may answer otherwise than what the object stores, which
	 * this is; "" if there is none. */
	char computed_by[128];
	bool changed; /**< the target changed it during each reading */
};

/** Where names are looked up. An expression that ends with "@FUNCTION" has the function in it. */
struct prb_inspect_place {
	pid_t tid;	/**< 0: the main thread, and for a function then the others */
	unsigned depth; /**< Python frame, 0: innermost */
	/** If no name is found in the innermost frame, its callers are searched one after the
	 * other, then `__main__`. */
	bool outwards;
	/** The innermost frame of that function: its name, or the last parts of its qualified
	 * name. NULL: by depth. */
	const char *function;
};

/**
 * Evaluates @p expression in that place. All of it is found in one reading. If the thread has no
 * frames, only names of modules are found. The hint of an error says which frame has the name.
 */
struct prb_error *prb_inspect(struct prb_target *target, const struct prb_inspect_place *place,
			      const char *expression, const struct prb_repr_options *options,
			      struct prb_inspected *ret) PRB_MUST_CHECK;

/**
 * As `value`, the possible continuations of @p prefix there, one on a line, as from
 * prb_python_names().
 */
struct prb_error *prb_inspect_names(struct prb_target *target, pid_t tid, unsigned depth,
				    const char *prefix, struct prb_inspected *ret) PRB_MUST_CHECK;

/**
 * Reads the object at @p address. PRB_ERROR_FAULT or PRB_ERROR_BAD_DATA if none is there,
 * PRB_ERROR_UNSUPPORTED for a running target.
 */
struct prb_error *prb_inspect_address(struct prb_target *target, uint64_t address,
				      const struct prb_repr_options *options,
				      struct prb_inspected *ret) PRB_MUST_CHECK;

void prb_inspected_deinit(struct prb_inspected *object);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The environment of a process whose program has written over what the kernel shows of it
 * (setproctitle does): os.environ in its memory.
 *
 * Threading: any thread.
 */
#ifndef PRB_VALUES_ENVIRONMENT_H
#define PRB_VALUES_ENVIRONMENT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "target/target.h"

/** True if nothing is left of it. A program's title may lie where it was. */
bool prb_environment_is_blank(const struct prb_str *environment);

/**
 * Appends os.environ, as /proc/PID/environ has variables: "RANK=3", each with a NUL. Nothing if it
 * cannot be read. PRB_ERROR_NOMEM is the only error.
 */
struct prb_error *prb_environment_inside(struct prb_target *target,
					 struct prb_str *ret) PRB_MUST_CHECK;

/**
 * Appends the file environ, or os.environ if that is blank. *inside (may be NULL) says which.
 * Errors are those of prb_target_read_file().
 */
struct prb_error *prb_environment_read(struct prb_target *target, struct prb_str *ret,
				       bool *inside) PRB_MUST_CHECK;

#endif

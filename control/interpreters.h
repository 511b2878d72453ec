/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The interpreters of a process, looked at once while it runs.
 *
 * Threading: as the target's.
 */
#ifndef PRB_CONTROL_INTERPRETERS_H
#define PRB_CONTROL_INTERPRETERS_H

#include "python/python.h"
#include "target/target.h"

/**
 * Calls @p look for each Python in @p t with its interpreters and threads; @p threads is NULL if
 * they cannot be read. Calls nothing if no Python is found.
 */
void prb_interpreters_look(struct prb_target *t,
			   void (*look)(void *context, struct prb_python *py,
					const struct prb_py_threads *threads),
			   void *context);

#endif

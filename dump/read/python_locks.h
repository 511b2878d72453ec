/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Describes in Python terms what a thread in futex() waits for: a lock and its owner, a
 * condition of a queue, the end of another thread. Internal to dump/.
 */
#ifndef PRB_DUMP_READ_PYTHON_LOCKS_H
#define PRB_DUMP_READ_PYTHON_LOCKS_H

#include "dump/read/reader.h"

/** Replaces waits_for where more is known than from the kernel. Needs frames and thread names. */
struct prb_error *prb_python_locks_explain(struct prb_reader *r,
					   struct prb_view *view) PRB_MUST_CHECK;

#endif

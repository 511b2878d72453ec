/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Adds the tasks of a trio run to a dump. Internal to dump/. */
#ifndef PRB_DUMP_TRIO_TASKS_H
#define PRB_DUMP_TRIO_TASKS_H

#include "dump/dump.h"

/** Of the run in the thread @p tid. Those that could not be read of one instant are an error. */
struct prb_error *prb_dump_add_trio(struct prb_target *target, const struct prb_dump_found *found,
				    pid_t tid, struct prb_dump *dump) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file For how long threads have slept, by the scheduler's note of when each last ran.
 * Internal to injector/.
 */
#ifndef PRB_DUMP_IDLE_H
#define PRB_DUMP_IDLE_H

#include "dump/dump.h"

/**
 * Sets idle_seconds of the threads of @p dump for which @p wanted is true (NULL: all). Absent
 * rather than wrong: a time stays negative where the kernel does not tell it, where it was erased,
 * and where it cannot be compared with a clock of the same CPU. Of a core or a snapshot: what was
 * noted when it was made.
 */
struct prb_error *prb_idle_fill(struct prb_target *t, struct prb_dump *dump,
				const bool *wanted) PRB_MUST_CHECK;

/** Of one thread. @p last: its sched note, @p now and @p lost: the clock of the same CPU, @p age:
 * of the thread, @p uptime: of the machine; all in milliseconds. Seconds; -1 if not credible. */
double prb_idle_credible(double last, double now, double lost, double age, double uptime);

#endif

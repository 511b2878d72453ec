/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How long the threads of a dump have slept, from the scheduler's record of when each last
 * ran. Asking the kernel for it takes longer than reading a stack, so a dump comes without it:
 * its maker asks afterwards, for the threads that it shows.
 *
 * Threading: that of the target. Nothing is allocated for the caller. An error says that memory
 * ran out, or that the process runs another program by now.
 */
#ifndef PRB_DUMP_IDLE_H
#define PRB_DUMP_IDLE_H

#include "dump/model/dump.h"

/**
 * Sets idle_seconds of the threads of @p dump, a dump of @p t, for which @p wanted is true (one
 * for each thread of the dump; NULL: all). Absent rather than wrong: a time stays negative where
 * the kernel does not tell it, where it was erased, and where it cannot be compared with a clock
 * of the same CPU. Of a core or a snapshot: what was noted when it was made.
 */
struct prb_error *prb_idle_fill(struct prb_target *t, struct prb_dump *dump,
				const bool *wanted) PRB_MUST_CHECK;

/**
 * The same of several dumps, for which the clocks are read once. The dumps must live until
 * prb_idle_finish(), which sets the times, and frees @p idle.
 */
struct prb_idle;
struct prb_error *prb_idle_create(struct prb_idle **ret) PRB_MUST_CHECK;
struct prb_error *prb_idle_note(struct prb_idle *idle, struct prb_target *t, struct prb_dump *dump,
				const bool *wanted) PRB_MUST_CHECK;
void prb_idle_finish(struct prb_idle *idle);

/** Of one thread. @p last: its sched note, @p now and @p lost: the clock of the same CPU, @p age:
 * of the thread, @p uptime: of the machine; all in milliseconds. Seconds; -1 if not credible. */
double prb_idle_credible(double last, double now, double lost, double age, double uptime);

#endif

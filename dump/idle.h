/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How long the threads of a dump have slept, from the scheduler's record of when each last
 * ran. Reading that record takes longer than reading a stack, so a dump has no idle times; its user
 * requests them for the threads that it shows.
 *
 * Threading: that of the target. Nothing is allocated for the caller. Errors: out of memory, or the
 * process has called exec.
 */
#ifndef PRB_DUMP_IDLE_H
#define PRB_DUMP_IDLE_H

#include "dump/model/dump.h"

/**
 * Sets idle_seconds of the threads of @p dump, a dump of @p t, for which @p wanted is true (one for
 * each thread of the dump; NULL: all). Absent rather than wrong: a time stays negative if the
 * kernel does not report it, has erased it, or if no clock of the same CPU can be read. Of a core
 * or a snapshot: the time noted when it was made.
 */
struct prb_error *prb_idle_fill(struct prb_target *t, struct prb_dump *dump,
				const bool *wanted) PRB_MUST_CHECK;

/**
 * The same for several dumps, for which the clocks are read once. The dumps must live until
 * prb_idle_finish(), which sets the times and frees @p idle.
 */
struct prb_idle;
struct prb_error *prb_idle_create(struct prb_idle **ret) PRB_MUST_CHECK;
struct prb_error *prb_idle_note(struct prb_idle *idle, struct prb_target *t, struct prb_dump *dump,
				const bool *wanted) PRB_MUST_CHECK;
void prb_idle_finish(struct prb_idle *idle);

/**
 * Seconds that one thread has slept; -1 if not credible. @p last: its sched note, @p now and @p
 * lost: the clock of the same CPU, @p age: of the thread, @p uptime: of the machine; all in
 * milliseconds.
 */
double prb_idle_credible(double last, double now, double lost, double age, double uptime);

#endif

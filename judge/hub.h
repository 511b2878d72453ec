/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Event loops that cannot go on: loops of asyncio and twisted blocked by a call, eventlet
 * hubs with nothing to wait for.
 *
 * Threading: that of the target.
 */
#ifndef PRB_JUDGE_HUB_H
#define PRB_JUDGE_HUB_H

#include "judge/judge.h"

/**
 * True if the only thread of the process sleeps in a hub without a timer and without a file to
 * watch, and the program handles no signal: then none of its greenlets can be resumed any more.
 * False if that is not known. @p dump (may be NULL) was made after @p switches of its main thread
 * were read: the thread has not run since then.
 */
struct prb_error *prb_case_hub_is_done(struct prb_case *c, const struct prb_dump *dump,
				       int64_t switches, bool *ret) PRB_MUST_CHECK;

/**
 * True if the thread sleeps in trio's loop, which has no timer: then the limit of a day, which trio
 * gives to the kernel, is none. False if that is not known.
 */
bool prb_case_loop_has_no_timer(const struct prb_case *c, const struct prb_dump_thread *thread);

/** A loop of asyncio or twisted that a call keeps from going on. */
struct prb_blocked_loop {
	const struct prb_dump_thread *thread; /**< NULL: there is none */
	double overdue; /**< seconds since its first timer was to run; 0: none is overdue */
	bool ready;	/**< a callback of it is to run now */
	/** Who waits for what the loop alone can run, in words; NULL: the call waits for others. */
	const char *itself;
};

/**
 * Finds the first thread that has slept for long inside of a callback of its loop, while a timer of
 * the loop is as overdue, or a callback ready; or whose call waits for the loop itself.
 */
struct prb_error *prb_case_blocked_loop(const struct prb_case *c,
					struct prb_blocked_loop *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Not standing still ourselves while a thread of a target stands.
 *
 * Job control from a terminal waits until it goes on. SIGSTOP cannot be held off, so timers of
 * the kernel continue us soon after it. (What a control group freezes stays frozen.)
 *
 * Threading: begun and ended by one thread, whose signal mask changes between.
 */
#ifndef PRB_INJECTOR_UNSTOPPED_H
#define PRB_INJECTOR_UNSTOPPED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum { PRB_UNSTOPPED_TIMERS = 4 };

struct prb_unstopped {
	timer_t timers[PRB_UNSTOPPED_TIMERS];
	size_t count;  /**< of those that there are */
	sigset_t mask; /**< of before */
	bool begun;
};

/** Holds job control off. Where there is no timer to be had, SIGSTOP is not. Begun already, it is
 * extended. */
void prb_unstopped_begin(struct prb_unstopped *u);

/** We are continued a tenth of a second from now; and 0.4, 1.6 and 6.4 seconds after the begin, for
 * where that came too early. */
void prb_unstopped_extend(struct prb_unstopped *u);

/** As before; what came from a terminal takes effect. Does nothing where it was not begun. */
void prb_unstopped_end(struct prb_unstopped *u);

#endif

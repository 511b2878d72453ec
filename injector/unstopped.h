/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Not standing still ourselves while a thread of a target stands.
 *
 * Job control from a terminal waits until it goes on. SIGSTOP cannot be held off, so a timer of
 * the kernel continues us soon after it. (What a control group freezes stays frozen.)
 *
 * Threading: begun and ended by one thread, whose signal mask changes between.
 */
#ifndef PRB_INJECTOR_UNSTOPPED_H
#define PRB_INJECTOR_UNSTOPPED_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

struct prb_unstopped {
	timer_t timer;
	sigset_t mask; /**< of before */
	bool begun, timed;
};

/** Holds job control off. Where there is no timer to be had, SIGSTOP is not. Begun already, only
 * the timer begins anew. */
void prb_unstopped_begin(struct prb_unstopped *u);

/** Has the timer begin anew: it continues us once, a tenth of a second from now. */
void prb_unstopped_extend(struct prb_unstopped *u);

/** As before; what came from a terminal takes effect. Does nothing where it was not begun. */
void prb_unstopped_end(struct prb_unstopped *u);

#endif

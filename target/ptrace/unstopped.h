/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Keeps us from being stopped (SIGTSTP, SIGSTOP) while a thread of a target is stopped.
 *
 * Job control from a terminal waits until it goes on. SIGSTOP cannot be held off, so timers of
 * the kernel continue us soon after it. (What a control group freezes stays frozen.)
 *
 * Threading: each thread for itself; its signal mask changes between begin and end. stop.h does
 * that for each thread of the target that it stops.
 */
#ifndef PRB_TARGET_PTRACE_UNSTOPPED_H
#define PRB_TARGET_PTRACE_UNSTOPPED_H

#include <stdbool.h>

/** Holds job control off, and SIGCHLD for waiters for stops, until it is ended as often. Where
 * there is no timer to be had, SIGSTOP is not. Begun already, it is extended. */
void prb_unstopped_begin(void);

/** We are continued a tenth of a second from now; and 0.4, 1.6 and 6.4 seconds after the begin, for
 * where that came too early. */
void prb_unstopped_extend(void);

/** As before; what came from a terminal takes effect. */
void prb_unstopped_end(void);

/**
 * Whether resources of the next begin are kept at an end, for a thread that begins very often. Off
 * again, nothing is left.
 */
void prb_unstopped_keep(bool keep);

#endif

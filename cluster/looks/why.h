/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Puts into words what a rank is at, and follows it to what keeps it: the worker of its
 * data loader, the holder of a lock.
 *
 * Threading: one thread at a time. All texts are escaped.
 */
#ifndef PRB_CLUSTER_LOOKS_WHY_H
#define PRB_CLUSTER_LOOKS_WHY_H

#include "base/error.h"
#include "base/str.h"
#include "cluster/looks/seen.h"

/** True if both are in the same collective, called from the same place. */
bool prb_why_same_call(const struct prb_seen *a, const struct prb_seen *b);

/** Appends "all_reduce", or what is known of an operation that only C++ functions show. */
void prb_why_put_operation(struct prb_str *s, const struct prb_seen *seen);

/** Appends "all_reduce, called at train.py:41 ((4,) float32, group 2 of ranks 0-3)". */
void prb_why_put_call(struct prb_str *s, const struct prb_seen *seen);

/** Appends "is at Trainer.step train.py:41, idle 12 s in …", or why nothing is known of it. */
void prb_why_put_state(struct prb_str *s, const struct prb_seen *seen);

/** Appends ": killed by SIGKILL; …" of a rank that has ended, as far as it is known. */
void prb_why_put_end(struct prb_str *s, const struct prb_seen *seen);
/** The same without the colon. */
void prb_why_put_how(struct prb_str *s, const struct prb_seen *seen);

/** Appends "has no process", "is stopped by a signal", …; @p several: for more than one rank. */
void prb_why_put_absence(struct prb_str *s, const struct prb_seen *seen, bool several);

/**
 * Appends what keeps a rank: "waits in DataLoader for worker 4251, which is at Hangs.__getitem__
 * waits.py:23, idle …", or where it is, and the holder of the lock or the GIL that it waits for.
 */
void prb_why_put_reason(struct prb_str *s, const struct prb_seen *seen);

/** Notes of each rank, from all its threads, which locks keep it: `cycle` and `holder`. */
struct prb_error *prb_why_note(struct prb_round *round) PRB_MUST_CHECK;

#endif

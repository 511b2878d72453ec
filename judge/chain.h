/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What a thread waits for in the end: a thread waits for a process, whose main thread waits
 * for another one, and so on.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_JUDGE_CHAIN_H
#define PRB_JUDGE_CHAIN_H

#include "judge/peers.h"

struct prb_chain {
	PRB_VEC(struct prb_peer_thread) list; /**< begins with the thread that was asked about */
	bool circle;			      /**< the last one waits for one of the others */
	pid_t unread; /**< process that the last one waits for, and that cannot be read */
};

void prb_chain_deinit(struct prb_chain *chain);
#define prb_auto_chain __attribute__((cleanup(prb_chain_deinit)))

/**
 * Follows @p thread of the process @p pid, one of @p peers, to a thread that waits for nobody that
 * is known, or for several. Processes on the way are read, in up to 16 steps.
 */
struct prb_error *prb_chain_follow(struct prb_peers *peers, pid_t pid, size_t thread,
				   struct prb_chain *ret) PRB_MUST_CHECK;

/**
 * True if each step of the chain waits without a limit of time. *alone: and surely for nobody but
 * the next one. A wait for any child ends also by that of one that another thread starts.
 */
bool prb_chain_lasts(const struct prb_peers *peers, const struct prb_chain *chain, bool *alone);

/** Appends "4711 MainThread → 4720 python3 (child) → 4733 cat (pipe)". */
void prb_chain_put(struct prb_str *s, const struct prb_peers *peers, const struct prb_chain *chain);

#endif

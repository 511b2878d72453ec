/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Processes that wait for each other: the threads of each, read once, with who can end their
 * waits.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_JUDGE_PEERS_H
#define PRB_JUDGE_PEERS_H

#include "judge/facts.h"

struct prb_peer {
	pid_t pid;
	struct prb_target *target;
	struct prb_dump *dump; /**< all its threads, or NULL: it cannot be read */
	int64_t user;	       /**< its real user id; -1: not known */
	bool whole;	       /**< no thread is missing in the dump */
	bool handles;	       /**< a signal that others send may make it do something */
	bool *stuck;	       /**< by thread: see prb_peers_judge() */
	/** Its threads that slept before they were read, and how often each had run. */
	PRB_VEC(struct prb_case_sleeper) sleepers;
};

/** Starts as {}. */
struct prb_peers {
	PRB_VEC(struct prb_peer) list;
	struct prb_search *search; /**< what was found for all of them */
};

void prb_peers_deinit(struct prb_peers *peers);
#define prb_auto_peers __attribute__((cleanup(prb_peers_deinit)))

/**
 * Reads the process @p pid, unless it was; *ret is its place. That is past the end of the list if
 * 16 processes were read.
 */
struct prb_error *prb_peers_add(struct prb_peers *peers, pid_t pid, size_t *ret) PRB_MUST_CHECK;

/**
 * Reads the processes that may hold the semaphores that threads of the process number @p place wait
 * for, and notes which thread does.
 */
struct prb_error *prb_peers_find_holders(struct prb_peers *peers, size_t place) PRB_MUST_CHECK;

/** Reads how long the threads have slept that are in the list. */
struct prb_error *prb_peers_note_idle(struct prb_peers *peers) PRB_MUST_CHECK;

/**
 * Reads the process @p pid, and all that its threads wait for without a limit of time, and so on,
 * up to 16 processes. None is stopped.
 */
struct prb_error *prb_peers_read(struct prb_peers *peers, pid_t pid) PRB_MUST_CHECK;

/**
 * Finds the threads that are stuck: each has slept since it was read until now, and whoever can end
 * its wait is stuck, too. A process that was not read may do anything.
 */
void prb_peers_judge(struct prb_peers *peers);

/** A thread of a process, by their places. */
struct prb_peer_thread {
	size_t peer, thread;
};

/** A circle of stuck threads, each of which waits for the next one's process, or that thread. */
struct prb_peer_circle {
	PRB_VEC(struct prb_peer_thread) list; /**< begins with the lowest tid */
};

/**
 * Finds one that the thread number @p thread of the first process is in. Threads that any thread
 * of their own process can wake are in none. *ret stays empty if there is none.
 */
struct prb_error *prb_peers_circle(const struct prb_peers *peers, size_t thread,
				   struct prb_peer_circle *ret) PRB_MUST_CHECK;

static inline const struct prb_dump_thread *prb_peer_thread(const struct prb_peers *peers,
							    struct prb_peer_thread at)
{
	return &peers->list.items[at.peer].dump->threads.items[at.thread];
}

#endif

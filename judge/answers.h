/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Threads that wait for the result of work that they have handed out, and whether anybody can
 * be seen to work on it: another thread, a child process, or the other end of a connection.
 *
 * An idle server waits for requests, and so for nobody in particular. What waits for an answer has
 * asked somebody.
 *
 * Threading: that of the target.
 */
#ifndef PRB_JUDGE_ANSWERS_H
#define PRB_JUDGE_ANSWERS_H

#include "judge/judge.h"

/**
 * The first thread that has waited for an answer for the limit `answer`: the main thread, if it is
 * one. *frame is the library's function that waits. NULL: none.
 */
const struct prb_dump_thread *prb_case_find_asker(struct prb_case *c,
						  const struct prb_dump_frame **frame);

/**
 * The first thread that has waited as long for the answer to a request by a REQ socket of ZeroMQ,
 * which has no connection to a server. NULL: none.
 */
const struct prb_dump_thread *prb_case_find_unconnected(const struct prb_case *c);

/** True if the thread is in such a function, however long. */
bool prb_thread_asks(const struct prb_dump_thread *thread);

/** True if it is the worker of a pool, and waits for the next task. */
bool prb_thread_is_idle_worker(const struct prb_dump_thread *thread);

/** What has been looked at to find who works. */
struct prb_workers {
	bool seen;	    /**< somebody works, or may: an answer may come */
	size_t processes;   /**< descendants that were looked at */
	size_t connections; /**< of TCP, to others, by which an answer may come */
};

/** Looks for somebody who may work for @p asker. Nothing is stopped. */
struct prb_error *prb_case_find_workers(const struct prb_case *c,
					const struct prb_dump_thread *asker,
					struct prb_workers *ret) PRB_MUST_CHECK;

/**
 * True if the main thread has waited for the limit `answer` for what only its own process can send,
 * and no thread waits for a client, a terminal or a signal. Then "nothing is wrong" is little more
 * than a guess.
 */
bool prb_case_waits_for_itself(const struct prb_case *c);

/** True if the process was started at least @p seconds ago; false if that is not known. */
bool prb_case_is_older(const struct prb_case *c, double seconds);

#endif

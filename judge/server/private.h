/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the files that judge a server. Internal to judge/server/. */
#ifndef PRB_JUDGE_SERVER_PRIVATE_H
#define PRB_JUDGE_SERVER_PRIVATE_H

#include "judge/limits.h"
#include "judge/server/server.h"
#include "judge/threads.h"

/** The finding as it is made. */
struct prb_server_verdict {
	const struct prb_rule *rule;
	struct prb_case *c;
	struct prb_server_looks *looks;
	struct prb_findings *findings;
	struct prb_finding *finding; /**< NULL: nothing was found yet */
	bool of_scheduler;	     /**< it says that a scheduler's requests do not go on */
};

/** Begins the finding. */
struct prb_error *prb_server_found(struct prb_server_verdict *v, enum prb_confidence confidence,
				   const char *brief) PRB_MUST_CHECK;
/** Adds a line of evidence about a process: its part, and what its main thread does. */
struct prb_error *prb_server_evidence(struct prb_server_verdict *v,
				      const struct prb_server_process *p) PRB_MUST_CHECK;
/** Appends "engine core (4242)". */
void prb_server_put(struct prb_str *s, const struct prb_server_process *p);
/** Appends what its main thread does: "in `f` a.py:3, idle 12 s in …". */
void prb_server_put_doing(struct prb_str *s, const struct prb_server_process *p);
/** Appends "1 request", "16 requests". */
void prb_server_put_count(struct prb_str *s, size_t count, const char *what);

/** The main thread of a process; NULL if its threads could not be read. */
const struct prb_dump_thread *prb_server_main(const struct prb_server_process *p);

/** Seconds that the request has been here; negative: not known. */
double prb_server_age(const struct prb_server_looks *looks,
		      const struct prb_server_request *request);
/** True if its state, or the queue that it is in, is among those of the list. */
bool prb_server_is_in(const struct prb_server_request *request, char *const *states, size_t count);

/** True if it has ended, and only keeps its blocks, which the other side is still to fetch. */
bool prb_server_is_done(const struct prb_server_request *request,
			const struct prb_engine_part *part);

/** Seconds since the last token of any request, as the frontends note it; -1: not known. */
double prb_server_silent(const struct prb_server_looks *looks);
/**
 * True if a request went on between the looks, as one has ended or has more tokens; or if a token
 * was made in the last seconds.
 */
bool prb_server_moved(const struct prb_server_looks *looks);

/** Messages of the ring between them that the worker has not read; -1: there is no such ring. */
struct prb_error *prb_server_unread(const struct prb_server_process *scheduler,
				    const struct prb_server_process *worker,
				    int64_t *ret) PRB_MUST_CHECK;

/**
 * messages.c: appends what waits in the socket of ZeroMQ that has the most messages, which came
 * (@p inwards) or are to be sent; *ret is false where nothing waits.
 */
struct prb_error *prb_server_put_messages(struct prb_str *text, const struct prb_server_process *p,
					  bool inwards, bool *ret) PRB_MUST_CHECK;

/** What the requests of a scheduler do. */
struct prb_server_load {
	size_t waiting, running, held, transfer, grammar, done, sessions;
	size_t keeping;				    /**< of the waiting ones: that have blocks */
	double oldest, oldest_waiting, oldest_held; /**< seconds; -1: none, or not known */
	const struct prb_server_request *head;	    /**< the first that waits */
	const struct prb_server_request *eldest;    /**< the oldest that is not done; or NULL */
	const char *held_state;
};

/** scheduler.c: how long no token was made; 0: nothing notes it. */
double prb_server_silence(const struct prb_server_looks *looks);
/** A step may take longer than the time between two looks: without times of tokens it is a guess.
 */
enum prb_confidence prb_server_confidence(const struct prb_server_looks *looks);

/** Processes of which each may wait for the others. */
struct prb_server_ranks {
	const struct prb_server_process *list[PRB_SERVER_PROCESSES_MAX];
	size_t count;
};

/** places.c: true if there are several, and the main threads of all are in one function. */
bool prb_server_are_together(const struct prb_server_ranks *ranks);
/** The only one of at least three that is not where all others are; NULL: there is none. */
const struct prb_server_process *prb_server_odd_rank(const struct prb_server_ranks *ranks);
/** Appends ", and 7 other workers are in `f` a.py:3"; @p what: "other worker". */
void prb_server_put_others(struct prb_str *s, const struct prb_server_ranks *ranks,
			   const struct prb_server_process *odd, const char *what);
/** Appends where each is: "all are in `f` a.py:3". */
void prb_server_put_places(struct prb_str *s, const struct prb_server_ranks *ranks);

/** gpu.c: appends that a kernel spins on a GPU of the process, if all speaks for it. */
void prb_server_put_spinning(struct prb_str *text, const struct prb_server_process *p);

/** ended.c: processes that a scheduler or a frontend has started, and that have ended. */
struct prb_error *prb_server_judge_ended(struct prb_server_verdict *v) PRB_MUST_CHECK;
/** compiling.c: a compiler below it has run for long; @p waiting: how many requests wait. */
struct prb_error *prb_server_judge_compiling(struct prb_server_verdict *v,
					     const struct prb_server_process *p,
					     size_t waiting) PRB_MUST_CHECK;
/** scheduler.c: workers that do not answer; requests that are not admitted. */
struct prb_error *prb_server_judge_schedulers(struct prb_server_verdict *v) PRB_MUST_CHECK;
/** step.c: a scheduler, and those with the same requests, do not get to the end of a step. */
struct prb_error *prb_server_judge_step(struct prb_server_verdict *v,
					const struct prb_server_process *s,
					const struct prb_server_load *load) PRB_MUST_CHECK;
/** True if it has been in the same step at both looks, or sleeps in one. */
bool prb_server_is_in_one_step(const struct prb_server_looks *looks,
			       const struct prb_server_process *s,
			       const struct prb_server_load *load);
/** step.c: the scheduler waits for an answer of its workers. */
struct prb_error *prb_server_judge_reply(struct prb_server_verdict *v,
					 const struct prb_server_process *s,
					 const struct prb_server_load *load) PRB_MUST_CHECK;
/** The same: requests that wait for something else while others run. */
struct prb_error *prb_server_judge_some(struct prb_server_verdict *v) PRB_MUST_CHECK;
/** replica.c: an event loop of the program that is blocked; slots that are all taken. */
struct prb_error *prb_server_judge_replicas(struct prb_server_verdict *v) PRB_MUST_CHECK;
/** frontend.c: an event loop that is blocked; requests that only one side has. */
struct prb_error *prb_server_judge_frontends(struct prb_server_verdict *v) PRB_MUST_CHECK;
/** untaken.c: old requests of a server of which only frontends are known. */
struct prb_error *prb_server_judge_untaken(struct prb_server_verdict *v) PRB_MUST_CHECK;

#endif

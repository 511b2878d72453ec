/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the files that judge a server. Internal to judge/server/. */
#ifndef PRB_JUDGE_SERVER_PRIVATE_H
#define PRB_JUDGE_SERVER_PRIVATE_H

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

/** The next process of that role behind @p after (NULL: the first); NULL if there is none. */
const struct prb_server_process *prb_server_next(const struct prb_server *server,
						 enum prb_engine_role role,
						 const struct prb_server_process *after);
/** True if @p worker works for @p scheduler: its child, or the server has one scheduler only. */
bool prb_server_serves(const struct prb_server *server, const struct prb_server_process *worker,
		       const struct prb_server_process *scheduler);

/** Seconds that the request has been here; negative: not known. */
double prb_server_age(const struct prb_server_looks *looks,
		      const struct prb_server_request *request);
/** True if its state, or the queue that it is in, is among those of the list. */
bool prb_server_is_in(const struct prb_server_request *request, char *const *states, size_t count);

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

/** scheduler.c: workers that ended, compile or do not answer; requests that are not admitted. */
struct prb_error *prb_server_judge_scheduler(
	struct prb_server_verdict *v, const struct prb_server_process *scheduler) PRB_MUST_CHECK;
/** frontend.c: an event loop that is blocked; requests that only one side has. */
struct prb_error *prb_server_judge_frontends(struct prb_server_verdict *v) PRB_MUST_CHECK;

#endif

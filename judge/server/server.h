/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What keeps the requests of an inference server: one finding for the whole server, whichever
 * of its processes was asked about.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_JUDGE_SERVER_SERVER_H
#define PRB_JUDGE_SERVER_SERVER_H

#include "inference/server.h"
#include "judge/judge.h"

/** Two looks at a server, a moment apart. Starts as {}. */
struct prb_server_looks {
	struct prb_engines engines;
	struct prb_server now, before;
	enum prb_dump_mode mode;
	bool twice;  /**< `before` is there */
	double time; /**< of `now`, seconds since the epoch */
};

void prb_server_looks_deinit(struct prb_server_looks *looks);
#define prb_auto_server_looks __attribute__((cleanup(prb_server_looks_deinit)))

/** Reads the server that @p pid is part of, once. It has no processes if it is part of none. */
struct prb_error *prb_server_looks_read(struct prb_server_looks *looks, pid_t pid,
					enum prb_dump_mode mode) PRB_MUST_CHECK;

/**
 * Adds at most one finding of @p rule. Where the first look raises a suspicion, the server is read
 * again, a moment later.
 */
struct prb_error *prb_server_judge(const struct prb_rule *rule, struct prb_case *c,
				   struct prb_server_looks *looks,
				   struct prb_findings *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Answers that several clients share: while one is being made, or was made a moment ago,
 * nothing is read again for another client. Threading: as the gateway's.
 */
#ifndef PRB_GATEWAY_SHARED_H
#define PRB_GATEWAY_SHARED_H

#include <stdbool.h>

#include "base/str.h"
#include "base/vec.h"

struct prb_request;
struct prb_route;

struct prb_shared_answer {
	const struct prb_route *route;
	struct prb_str reply, log; /**< the last one; and what the command wrote to stderr */
	double began, when;	   /**< monotonic: the reading, and its end */
};

/** Starts as {}. */
struct prb_shared {
	PRB_VEC(struct prb_shared_answer) list;
};
void prb_shared_deinit(struct prb_shared *shared);

/**
 * Answers the request with an earlier answer of its route; false if there is none. It must have
 * been made after @p since, and begun after the last change of a target, so that a process that was
 * just resumed does not look paused.
 */
bool prb_shared_take(struct prb_request *r, double since);
/** True if another request is making that answer now. */
bool prb_shared_is_made(const struct prb_request *r);
/** The request's answer is the last one of its route, if that is shared. */
void prb_shared_put(const struct prb_request *r);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `probing inject --listen`: a server in the background, as long as the agent. */
#ifndef PRB_REMOTE_SERVE_BACKGROUND_H
#define PRB_REMOTE_SERVE_BACKGROUND_H

#include "remote/serve/serve.h"
#include "base/error.h"

/**
 * Answers HTTP on connections to @p address that come from the socket @p from, until that ends.
 * Runs in a process of its own, which then ends.
 */
typedef void prb_serve_http(int from, pid_t pid, const char *address,
			    const struct prb_token *token);

/**
 * Leaves a server of the process @p pid, which has an agent, behind, in a session of its own. It
 * ends with the process and with the agent, by SIGTERM, or with @p once after the first client.
 * Returns when it serves and is known (remote/serve/known.h). @p http, which may be NULL, is
 * started when the first client speaks HTTP.
 */
struct prb_error *prb_serve_background(pid_t pid, const struct prb_listener *listener,
				       const struct prb_token *token, bool once,
				       prb_serve_http *http) PRB_MUST_CHECK;

#endif

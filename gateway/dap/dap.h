/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The Debug Adapter Protocol for one client: an editor's view of a process, core file or
 * snapshot. All of it is read from outside; a process is driven by its agent (control/drive/), and
 * runs on without breakpoints when the client disconnects.
 *
 * The client may run code as the user of the target: whoever can connect must be that user, or know
 * the token.
 *
 * Threading: one thread.
 */
#ifndef PRB_GATEWAY_DAP_DAP_H
#define PRB_GATEWAY_DAP_DAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "target/target.h"

struct prb_dap_options {
	const char *target; /**< as a user names it; NULL: the client's attach request has it */
	const struct prb_core_places *places;
	int in, out;
	const char *token; /**< that an attach request must have, or NULL */
	double within;	   /**< seconds in which a pause has to begin; 0: two */
};

/** Talks to the client until it disconnects. */
struct prb_error *prb_dap_run(const struct prb_dap_options *options) PRB_MUST_CHECK;

/**
 * Looks at the front of @p size bytes that were received: 1 and the message's body, with the bytes
 * it takes in @p used, 0 if more has to come, -1 if it is no message, or too large.
 */
int prb_dap_next(const char *data, size_t size, const char **body, size_t *length, size_t *used);

/** True if the other end of a connection on this machine is a process of our user, or of root. */
bool prb_dap_peer_is_ours(int fd);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Serves a process to remote clients (`probing -t HOST:PORT …`).
 *
 * The server is a process of ours; nothing of it is in the target. It listens at one address, lets
 * in clients that prove to know the token, and runs for them the commands of a list as its own
 * children, `probing -t TARGET COMMAND…`, whose output it passes on. One thread does it all, in
 * poll().
 *
 *     struct prb_listener listener;
 *     PRB_TRY(prb_listener_open("127.0.0.1:9922", &listener));
 *     PRB_TRY(prb_token_choose(NULL, &token));
 *     … tell listener.address and, unless token.known, token.text …
 *     err = prb_serve(&(struct prb_serve){.listener = &listener, .token = &token, …});
 *     prb_listener_close(&listener);
 */
#ifndef PRB_REMOTE_SERVE_SERVE_H
#define PRB_REMOTE_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "remote/socket_address.h"
#include "remote/token.h"
#include "base/error.h"
#include "base/str.h"

#define PRB_SERVE_ADDRESS "127.0.0.1:9922"

enum { PRB_SERVE_MAX_ENDS = 4 };

/** The output and status of a command that the caller answers itself. */
struct prb_serve_answer {
	struct prb_str out, err;
	int code; /**< exit code */
};

struct prb_serve {
	const struct prb_listener *listener;
	const struct prb_token *token;
	pid_t pid;	    /**< reported to clients */
	const char *target; /**< what commands get after -t: mostly the pid */
	bool once;	    /**< ends when the first client that was let in has left */

	/**
	 * The service ends when one of these descriptors is readable or at its end, once the
	 * commands that run have ended, but after 2 s in any case; -1 or 0 for none. They are the
	 * caller's, which may change them in `ended`.
	 */
	int *ends;
	size_t end_count;
	/** Asked then, if not NULL: false if the service goes on; @p which is an index of `ends`.
	 */
	bool (*ended)(void *context, size_t which);

	/**
	 * Called for each command before the list of commands is searched: true if the caller has
	 * answered it by filling @p answer (zeroed before), without blocking. May be NULL. The
	 * words are the client's, not checked for anything.
	 */
	bool (*command)(void *context, const char *const *words, size_t count,
			struct prb_serve_answer *answer);
	/**
	 * Gives a socket to which connections that begin like HTTP are handed over, each as one
	 * SCM_RIGHTS descriptor; -1 if there is none. NULL: such clients violate the protocol.
	 */
	int (*http)(void *context);
	/** The last client that was let in has left. May be NULL. */
	void (*last_left)(void *context);
	void *context;
};

/**
 * Serves until one of `ends` ends it, or with `once` the client has left. SIGPIPE is ignored
 * meanwhile. Children get the caller's environment without the token, no signal blocked, and end
 * with this process.
 */
struct prb_error *prb_serve(const struct prb_serve *how) PRB_MUST_CHECK;

#endif

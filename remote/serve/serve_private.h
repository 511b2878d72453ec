/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the parts of a server: its clients and the commands that run for them. Internal
 * to remote/serve/.
 */
#ifndef PRB_REMOTE_SERVE_SERVE_PRIVATE_H
#define PRB_REMOTE_SERVE_SERVE_PRIVATE_H

#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

#include "remote/wire.h"
#include "remote/serve/serve.h"
#include "remote/serve/limit.h"
#include "command/words.h"
#include "base/str.h"

enum {
	PRB_SERVE_MAX_CLIENTS = 64,   /**< that were let in */
	PRB_SERVE_MAX_STRANGERS = 64, /**< that were not yet; then the oldest has to go */
	PRB_SERVE_MAX_SLOTS = PRB_SERVE_MAX_CLIENTS + PRB_SERVE_MAX_STRANGERS + 1,
	PRB_SERVE_QUEUE = 256 << 10, /**< bytes that wait for a client; no more are read then */
};

/** A command that runs for a client. Starts as PRB_SERVE_NO_CHILD. */
struct prb_serve_child {
	pid_t pid;	      /**< 0: none */
	int in, out, err;     /**< our ends of its pipes, or -1 */
	struct prb_str input; /**< what it is to read yet */
	bool input_ended;
	size_t taken;  /**< bytes that it took and that were not reported to the client yet */
	double killed; /**< when it was asked to end; 0: it was not */
};
#define PRB_SERVE_NO_CHILD                     \
	(struct prb_serve_child)               \
	{                                      \
		.in = -1, .out = -1, .err = -1 \
	}

/** Starts /proc/self/exe with these words. */
struct prb_error *prb_serve_child_start(struct prb_serve_child *child, struct prb_words *words,
					const struct prb_remote_run *run,
					const struct sockaddr_storage *client) PRB_MUST_CHECK;

/** Writes what it is to read, as far as it takes it. */
void prb_serve_child_feed(struct prb_serve_child *child);

/** Asks it to end, later kills it: call this until it is reaped. */
void prb_serve_child_kill(struct prb_serve_child *child, double now);

/** True if it has ended; *status as of waitpid(). Its pipes are closed then. */
bool prb_serve_child_reap(struct prb_serve_child *child, int *status);

enum prb_serve_state {
	PRB_SERVE_EXPECTS_HELLO,
	PRB_SERVE_EXPECTS_PROOF,
	PRB_SERVE_LET_IN,
	PRB_SERVE_REFUSED, /**< gets what was said to it, and is closed */
	PRB_SERVE_GONE,	   /**< its connection is closed; its command may have to end */
};

struct prb_serve_client {
	enum prb_serve_state state;
	int fd;
	struct sockaddr_storage address;
	bool was_in;  /**< it was let in */
	double since; /**< it is here */
	double by;    /**< it has to do the next thing by then */
	struct prb_remote_hello hello;
	uint8_t nonce[PRB_REMOTE_NONCE_SIZE];
	uint16_t request; /**< number of the run frame that is answered */
	bool shut;	  /**< refused, and all was sent to it */
	struct prb_str in, out;
	struct prb_serve_child child;
};

struct prb_server {
	const struct prb_serve *how;
	struct prb_limit limit;
	struct prb_serve_client *clients[PRB_SERVE_MAX_SLOTS];
	size_t count;
	size_t let_in; /**< clients that are in */
	bool served;   /**< a client was let in before */
	double now;
	double drain; /**< when the service ends at the latest; 0: it goes on */
};

/** Handles what was received from a client, as far as may be. */
void prb_serve_client_take(struct prb_server *server, struct prb_serve_client *client);

/** Queues a frame. */
void prb_serve_client_put(struct prb_serve_client *client, enum prb_remote_type type,
			  const void *payload, size_t length);

/** Queues an error, which it ends. */
void prb_serve_client_tell(struct prb_serve_client *client, struct prb_error *err);

/** As above, and closes the connection after that. */
void prb_serve_client_refuse(struct prb_server *server, struct prb_serve_client *client,
			     struct prb_error *err);

/** Closes the connection. */
void prb_serve_client_drop(struct prb_server *server, struct prb_serve_client *client);

/** Sends a copy of the descriptor to @p socket; false if it is not received. */
bool prb_serve_hand_over(int socket, int fd);

#endif

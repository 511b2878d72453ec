/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file One client: its socket, its receive buffer and its send queue.
 *
 * Threading: the server's thread receives, and is the only one to open and close; every thread may
 * send. No lock is held while anything is waited for. All memory comes from mmap(), so that
 * nothing here depends on the state of the target's heap.
 */
#ifndef PRB_AGENT_CLIENT_CONNECTION_H
#define PRB_AGENT_CLIENT_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/client/request.h"
#include "agent/protocol.h"

struct prba_connection {
	int fd;
	uint64_t inode;	  /**< of the socket: the program may close what is not its own */
	int32_t pid;	  /**< the client's, as this process sees it; 0: it cannot see it */
	atomic_bool gone; /**< the client left, or cannot follow: nothing more is sent */
	bool keeps;	  /**< there is no socket: what is sent stays in `out`, to be read there */
	bool greeted;	  /**< its hello was read */
	bool wants_stop;  /**< it asked for a stop, to be answered when all is over */
	uint16_t stop_request;
	int64_t interrupt_at; /**< when code without a client is interrupted again */
	int64_t ends_by;      /**< until then such code is expected to end, in its first second */

	uint8_t *in; /**< server's thread only */
	size_t in_used, in_size;

	pthread_mutex_t lock; /**< of what follows */
	uint8_t *out;
	size_t out_start, out_end;

	struct prba_job job;
};

/** A connection for the accepted socket @p fd, which it owns from now on; NULL: no memory. */
struct prba_connection *prba_connection_create(int fd);

/** Closes the socket and gives the memory back. Its job must be over. */
void prba_connection_destroy(struct prba_connection *c);

/**
 * Receives all available bytes. False if the client is gone. Frames are then taken one by one with
 * prba_connection_next(), as prb_wire_next() gives them, and dropped with prba_connection_drop().
 */
bool prba_connection_receive(struct prba_connection *c);
int prba_connection_next(struct prba_connection *c, struct prb_wire_frame *ret);
void prba_connection_drop(struct prba_connection *c, const struct prb_wire_frame *frame);

/** Outcomes of sending a frame. */
enum prba_sent {
	PRBA_SENT, /**< or the client is gone */
	PRBA_FULL, /**< the client does not follow: try again later */
};

/** Sends or queues one frame of up to PRB_WIRE_MAX_REPLY bytes; never waits. */
enum prba_sent prba_connection_send(struct prba_connection *c, uint16_t type, uint16_t request,
				    const void *data, size_t length);

/** Waits until the client catches up; a client that stays behind for long is dropped. */
void prba_connection_wait(struct prba_connection *c);

/** Sends what is queued; true if something is left. */
bool prba_connection_flush(struct prba_connection *c);

/** Nothing more is sent, and the server's thread finds the connection to be at its end. */
void prba_connection_give_up(struct prba_connection *c);

/**
 * Identifies the socket or file behind a descriptor by a number that nothing else has at the same
 * time; 0 if it is neither. (All eventfds, epolls and timerfds share one.)
 */
uint64_t prba_inode(int fd);

#endif

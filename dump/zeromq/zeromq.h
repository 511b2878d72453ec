/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The sockets of libzmq 4.x in a target, read from its objects: their types, connections, and
 * the messages that wait in them.
 *
 * The kernel tells where to begin: an epoll instance of libzmq's I/O threads has the address of an
 * object with each descriptor, and each object knows its context. From there on, an object is known
 * by its class, and the places of its members are found by what they point to. So neither symbols
 * nor a table of versions is needed.
 *
 * The target runs meanwhile: numbers of a connection may be of different moments, and an object
 * that is being made or freed is left out.
 *
 * Threading: that of the target. Errors: PRB_ERROR_NOMEM, and what reading descriptors gives.
 */
#ifndef PRB_DUMP_ZEROMQ_ZEROMQ_H
#define PRB_DUMP_ZEROMQ_ZEROMQ_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "target/target.h"

/** One connection of a socket. Numbers are -1 where they are not known. */
struct prb_zeromq_pipe {
	uint64_t address;
	uint64_t other;	 /**< the socket at its other end, in the same context; or 0 */
	int fd;		 /**< that of the connection; -1: not connected, or within the context */
	int64_t in, out; /**< messages that wait to be received, and to be sent */
	int64_t in_limit, out_limit; /**< high-water marks; 0: none */
	int64_t received, sent;	     /**< messages so far */
	bool full;		     /**< no more can be sent: the mark is reached */
	struct prb_str endpoint;     /**< "tcp://10.0.0.3:5555"; "" if not known */
};

struct prb_zeromq_socket {
	uint64_t address, context;
	const char *type;	 /**< "REQ", "ROUTER"; static */
	int fd;			 /**< by which a thread waits for it; -1: not known */
	struct prb_str endpoint; /**< the last it was bound or connected to; "" if not known */
	bool listens;		 /**< anybody may connect to it */
	PRB_VEC(struct prb_zeromq_pipe) pipes;
};

struct prb_zeromq {
	PRB_VEC(struct prb_zeromq_socket) sockets;
	bool cut; /**< there may be more */
};

/** Reads all sockets; none is no error. */
struct prb_error *prb_zeromq_read(struct prb_target *t, struct prb_zeromq *ret) PRB_MUST_CHECK;
void prb_zeromq_deinit(struct prb_zeromq *zeromq);
#define prb_auto_zeromq __attribute__((cleanup(prb_zeromq_deinit)))

/** The socket for which a thread waits that waits for the descriptor @p fd; NULL if none. */
const struct prb_zeromq_socket *prb_zeromq_socket_of(const struct prb_zeromq *zeromq, int fd);

#endif

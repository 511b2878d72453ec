/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>

#include "base/cleanup.h"
#include "dump/waits/descriptors.h"
#include "dump/zeromq/zeromq.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/facts.h"
#include "target/task.h"

enum {
	SOCKET,
	TYPE,
	ENDPOINT,
	FD,
	CONNECTION,
	CONNECTED,
	CONNECTION_FD,
	CONNECTION_ENDPOINT,
	REMOTE,
	PEER_PID,
	PEER_SOCKET,
	WAITING_IN,
	WAITING_OUT,
	IN_HWM,
	OUT_HWM,
	FULL,
	RECEIVED,
	SENT,
	CONTEXT,
};

static const struct prb_column columns[] = {
	[SOCKET] = {"socket", PRB_COLUMN_INTEGER, "Address of libzmq's socket"},
	[TYPE] = {"type", PRB_COLUMN_TEXT, "REQ, REP, ROUTER, DEALER, PUB, SUB, PUSH, PULL, …"},
	[ENDPOINT] = {"endpoint", PRB_COLUMN_TEXT,
		      "The last it was bound or connected to; NULL if none"},
	[FD] = {"fd", PRB_COLUMN_INTEGER, "Eventfd by which a thread waits for the socket"},
	[CONNECTION] = {"connection", PRB_COLUMN_INTEGER,
			"Number of the connection; NULL if the socket has none"},
	[CONNECTED] = {"connected", PRB_COLUMN_INTEGER,
		       "1 if the other end is there, 0 while it is being connected"},
	[CONNECTION_FD] = {"connection_fd", PRB_COLUMN_INTEGER,
			   "Descriptor of the connection; NULL for inproc"},
	[CONNECTION_ENDPOINT] = {"connection_endpoint", PRB_COLUMN_TEXT,
				 "Endpoint of the connection, if libzmq knows"},
	[REMOTE] = {"remote", PRB_COLUMN_TEXT, "Address and port of the other end, of TCP"},
	[PEER_PID] = {"peer_pid", PRB_COLUMN_INTEGER,
		      "Process at the other end; NULL if unknown, or this one"},
	[PEER_SOCKET] = {"peer_socket", PRB_COLUMN_INTEGER,
			 "The socket at the other end, of inproc"},
	[WAITING_IN] = {"waiting_in", PRB_COLUMN_INTEGER,
			"Messages that came and are not received yet"},
	[WAITING_OUT] = {"waiting_out", PRB_COLUMN_INTEGER,
			 "Messages to send that libzmq has not passed on"},
	[IN_HWM] = {"in_hwm", PRB_COLUMN_INTEGER, "High-water mark of the first; 0: none"},
	[OUT_HWM] = {"out_hwm", PRB_COLUMN_INTEGER, "High-water mark of the second; 0: none"},
	[FULL] = {"full", PRB_COLUMN_INTEGER,
		  "1 if that mark is reached: sending waits, or drops messages"},
	[RECEIVED] = {"received", PRB_COLUMN_INTEGER, "Messages received so far"},
	[SENT] = {"sent", PRB_COLUMN_INTEGER, "Messages sent so far"},
	[CONTEXT] = {"context", PRB_COLUMN_INTEGER, "Address of its context"},
	{},
};

/* What peers are looked up with; each may be shared by many rows. */
struct lookup {
	struct prb_wait_context *waits;
	struct prb_descriptors *descriptors;
};

static void lookup_deinit(struct lookup *lookup)
{
	prb_wait_context_destroy(lookup->waits);
	prb_descriptors_destroy(lookup->descriptors);
}

static void put_text(struct prb_scan *scan, unsigned column, const struct prb_str *text)
{
	if (text->length)
		prb_put_text(scan, column, prb_str_text(text));
}

static struct prb_error *put_remote(struct prb_scan *scan, struct lookup *lookup, int fd)
{
	struct prb_descriptor d;
	struct prb_error *err;

	if (!prb_scan_wants(scan, REMOTE))
		return NULL;
	err = prb_descriptor_read(lookup->descriptors, fd, PRB_DESCRIPTOR_SOCKET, &d);
	if (err)
		return prb_error_tolerate(err, NULL);
	if (d.socket[0] && *d.socket[PRB_SOCKET_REMOTE_PORT])
		prb_put_format(scan, REMOTE, "%s:%s", d.socket[PRB_SOCKET_REMOTE_ADDRESS],
			       d.socket[PRB_SOCKET_REMOTE_PORT]);
	prb_descriptor_deinit(&d);
	return NULL;
}

static struct prb_error *put_pipe(struct prb_scan *scan, struct lookup *lookup,
				  const struct prb_zeromq_pipe *pipe)
{
	prb_put_integer(scan, CONNECTED, pipe->fd >= 0 || pipe->other);
	prb_put_natural(scan, CONNECTION_FD, pipe->fd);
	put_text(scan, CONNECTION_ENDPOINT, &pipe->endpoint);
	if (pipe->other)
		prb_put_integer(scan, PEER_SOCKET, (int64_t)pipe->other);
	prb_put_natural(scan, WAITING_IN, pipe->in);
	prb_put_natural(scan, WAITING_OUT, pipe->out);
	prb_put_natural(scan, IN_HWM, pipe->in_limit);
	prb_put_natural(scan, OUT_HWM, pipe->out_limit);
	if (pipe->out >= 0)
		prb_put_integer(scan, FULL, pipe->full);
	prb_put_natural(scan, RECEIVED, pipe->received);
	prb_put_natural(scan, SENT, pipe->sent);
	if (pipe->fd < 0)
		return NULL;
	PRB_TRY(put_remote(scan, lookup, pipe->fd));
	if (prb_scan_wants(scan, PEER_PID)) {
		struct prb_enders peers;

		PRB_TRY(prb_wait_peers(lookup->waits, pipe->fd, &peers));
		if (peers.count)
			prb_put_integer(scan, PEER_PID, peers.pids[0]);
	}
	return NULL;
}

static struct prb_error *put_socket(struct prb_scan *scan, const struct prb_zeromq_socket *socket)
{
	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, SOCKET, (int64_t)socket->address);
	prb_put_static(scan, TYPE, socket->type);
	put_text(scan, ENDPOINT, &socket->endpoint);
	prb_put_natural(scan, FD, socket->fd);
	prb_put_integer(scan, CONTEXT, (int64_t)socket->context);
	return NULL;
}

static struct prb_error *put_all(struct prb_scan *scan, struct lookup *lookup,
				 const struct prb_zeromq *zeromq)
{
	const struct prb_zeromq_socket *socket;

	prb_vec_each (socket, &zeromq->sockets) {
		if (!socket->pipes.count)
			PRB_TRY(put_socket(scan, socket));
		for (size_t i = 0; i < socket->pipes.count; i++) {
			PRB_TRY(put_socket(scan, socket));
			prb_put_integer(scan, CONNECTION, (int64_t)i);
			PRB_TRY(put_pipe(scan, lookup, &socket->pipes.items[i]));
		}
	}
	if (!zeromq->sockets.count)
		prb_scan_note(scan, "zmq.sockets: the process has no socket of ZeroMQ, or libzmq "
				    "is older than 4.0");
	else if (zeromq->cut)
		prb_scan_note(scan, "zmq.sockets: there are more than can be read");
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	__attribute__((cleanup(lookup_deinit))) struct lookup lookup = {};
	prb_auto_zeromq struct prb_zeromq zeromq = {};
	struct prb_target *t = prb_instant_target(scan->instant);
	bool told;

	PRB_TRY(prb_fact_told(scan, prb_zeromq_read(t, &zeromq), &told));
	if (!told)
		return NULL;
	PRB_TRY(prb_wait_context_create(t, &lookup.waits));
	PRB_TRY(prb_wait_context_search_all(lookup.waits, NULL));
	PRB_TRY(prb_descriptors_create(t, &lookup.descriptors));
	return put_all(scan, &lookup, &zeromq);
}

const struct prb_table prb_table_zmq_sockets = {
	.schema = "zmq",
	.name = "sockets",
	.doc = "Sockets of ZeroMQ (libzmq 4), a row for each connection, or one if there is none",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 20,
	.scan = scan,
};

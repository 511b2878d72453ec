/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A connection: libzmq's pipe_t. Two of them belong together: that of the socket, and that of the
 * session in an I/O thread, or of another socket of the context.
 *
 * Its members, after four tables of classes: the queues, a flag for each, the high-water mark for
 * sending, the low-water mark for receiving (and since 4.2 two more numbers), counters of messages
 * read, written, and read by the other one, that other one, and who is told of events.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/zeromq/private.h"

static const char PIPE[] = "N3zmq6pipe_tE";

enum {
	LIMITS = 11, /* word: the flags, and the high-water mark */
	FIRST_PEER = 16,
	LAST_PEER = 24,
	LOWEST = 4096,	    /* no object lies below */
	SESSION_PARTS = 64, /* bytes from an engine's start to the part that a session knows */
};

static bool is_pipe(struct prb_zeromq_reader *r, uint64_t address)
{
	const struct prb_class *class;
	uint64_t object;

	class = prb_class_of(&r->classes, address, &object);
	return class && object == address && !strcmp(class->name, PIPE);
}

/* The word of `peer`: a pipe whose own word there is this one. 0: there is none. */
static size_t find_peer(struct prb_zeromq_reader *r, const struct prb_zeromq_words *pipe,
			struct prb_zeromq_words *peer)
{
	for (size_t i = FIRST_PEER; i <= LAST_PEER && i < pipe->count; i++) {
		if (pipe->items[i] == pipe->address || !is_pipe(r, pipe->items[i]))
			continue;
		prb_zeromq_words(r, pipe->items[i], peer);
		if (i + 1 < peer->count && peer->items[i] == pipe->address)
			return i;
	}
	return 0;
}

static int64_t waiting(uint64_t written, uint64_t read)
{
	/* Read a moment earlier: what was read since was written then. */
	return written > read && written - read <= INT64_MAX ? (int64_t)(written - read) : 0;
}

static void count(const struct prb_zeromq_words *pipe, const struct prb_zeromq_words *peer,
		  size_t at, struct prb_zeromq_pipe *ret)
{
	const uint64_t *own = &pipe->items[at], *other = &peer->items[at];

	ret->in = waiting(other[-2], own[-3]);
	ret->out = waiting(own[-2], other[-3]);
	ret->received = (int64_t)(own[-3] & INT64_MAX);
	ret->sent = (int64_t)(own[-2] & INT64_MAX);
	ret->out_limit = (int32_t)(pipe->items[LIMITS] >> 32);
	ret->in_limit = (int32_t)(peer->items[LIMITS] >> 32);
	ret->full = ret->out_limit > 0 && waiting(own[-2], own[-1]) >= ret->out_limit;
}

/* The watched object that begins at or next below the address; they are sorted. */
static const struct prb_zeromq_watched *watched_at(const struct prb_zeromq_reader *r,
						   uint64_t address)
{
	size_t low = 0, high = r->watched.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->watched.items[middle].object <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &r->watched.items[low - 1] : NULL;
}

/* The descriptor of the engine that the session knows. */
static int find_fd(const struct prb_zeromq_reader *r, const struct prb_zeromq_words *session)
{
	for (size_t i = 0; i < session->count; i++) {
		const struct prb_zeromq_watched *watched = watched_at(r, session->items[i]);

		if (watched && session->items[i] - watched->object < SESSION_PARTS &&
		    watched->engine)
			return watched->fd;
	}
	return -1;
}

static bool is_protocol(const char *text)
{
	static const char *const protocols[] = {"tcp", "ipc", "tipc", "udp", "ws", "wss", "vsock"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(protocols); i++)
		if (!strcmp(text, protocols[i]))
			return true;
	return false;
}

/*
 * A session that connects knows the address: two strings, as they lie since the C++11 ABI of
 * libstdc++ (four words each), or before (one).
 */
static void find_address(struct prb_zeromq_reader *r, const struct prb_zeromq_words *session,
			 struct prb_str *ret)
{
	enum { NEW = 4, OLD = 1 };
	uint64_t strings[NEW + 1];
	struct prb_error *err;

	for (size_t i = FIRST_PEER; i < session->count; i++) {
		prb_auto_str struct prb_str protocol = {}, address = {};
		uint64_t at = session->items[i];

		if (at < LOWEST || at % sizeof(uint64_t))
			continue;
		err = prb_mem_peek(r->classes.mem, at, strings, sizeof(strings));
		prb_error_destroy(err);
		if (err || !prb_zeromq_text(r, strings[0], &protocol) ||
		    !is_protocol(prb_str_text(&protocol)))
			continue;
		at = strings[0] == at + 2 * sizeof(uint64_t) ? strings[NEW] : strings[OLD];
		if (!prb_zeromq_text(r, at, &address))
			continue;
		prb_str_printf(ret, "%s://%s", prb_str_text(&protocol), prb_str_text(&address));
		return;
	}
}

/* The endpoints of the connection, since 4.3: ours, and that of the other side. */
static void find_endpoint(struct prb_zeromq_reader *r, const struct prb_zeromq_words *pipe,
			  size_t from, struct prb_str *ret)
{
	enum { SEARCHED = 24 };

	for (size_t i = from; i < from + SEARCHED && i < pipe->count; i++)
		if (prb_zeromq_endpoint(r, pipe->items[i], ret))
			return;
}

bool prb_zeromq_pipe(struct prb_zeromq_reader *r, uint64_t address, struct prb_zeromq_pipe *ret)
{
	struct prb_zeromq_words pipe, peer, session;
	const struct prb_class *class;
	uint64_t sink;
	size_t at;

	*ret = (struct prb_zeromq_pipe){address, 0, -1, -1, -1, -1, -1, -1, -1, false, {}};
	if (!is_pipe(r, address))
		return false;
	prb_zeromq_words(r, address, &pipe);
	at = find_peer(r, &pipe, &peer);
	if (!at)
		return true;
	count(&pipe, &peer, at, ret);
	find_endpoint(r, &pipe, at + 2, &ret->endpoint);
	class = prb_class_of(&r->classes, peer.items[at + 1], &sink);
	if (!class)
		return true;
	if (!strstr(class->name, "session")) {
		ret->other = sink;
		return true;
	}
	prb_zeromq_words(r, sink, &session);
	ret->fd = find_fd(r, &session);
	if (!ret->endpoint.length)
		find_address(r, &session, &ret->endpoint);
	return true;
}

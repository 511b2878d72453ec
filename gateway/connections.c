/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/connections.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/** A request has to be there, whole, after so many seconds. */
static const double REQUEST_SECONDS = 30;

/** Closes it for both sides; libmicrohttpd does the rest. */
static void drop(struct prb_connection *c)
{
	if (!c->dropped)
		shutdown(c->fd, SHUT_RDWR);
	c->dropped = true;
}

/** The oldest connection without the token makes room. */
static void drop_oldest_stranger(struct prb_gateway *g)
{
	struct prb_connection *oldest = NULL;
	size_t strangers = 0;

	for (size_t i = 0; i < g->connections.count; i++) {
		struct prb_connection *c = g->connections.items[i];

		if (c->let_in || c->dropped)
			continue;
		strangers++;
		if (!oldest || c->since < oldest->since)
			oldest = c;
	}
	if (strangers > PRB_GATEWAY_MAX_STRANGERS)
		drop(oldest);
}

static void begin(struct prb_gateway *g, struct MHD_Connection *mhd, void **place)
{
	struct prb_connection *c = calloc(1, sizeof(*c)), **slot;
	socklen_t length = sizeof(c->peer);

	slot = c ? prb_vec_push(&g->connections) : NULL;
	if (!slot) {
		free(c);
		return;
	}
	*slot = *place = c;
	c->fd = prb_mhd.get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	c->since = prb_clock_seconds();
	if (getpeername(c->fd, (struct sockaddr *)&c->peer, &length))
		c->peer.ss_family = AF_UNSPEC;
	drop_oldest_stranger(g);
}

static void end(struct prb_gateway *g, void **place)
{
	for (size_t i = 0; i < g->connections.count; i++)
		if (g->connections.items[i] == *place) {
			g->connections.items[i] = g->connections.items[--g->connections.count];
			break;
		}
	free(*place);
	*place = NULL;
}

void prb_connection_notify(void *context, struct MHD_Connection *mhd, void **place,
			   enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		begin(context, mhd, place);
	else
		end(context, place);
}

/** Receives one descriptor; -1: there is none. *ended: the sender is gone. */
static int receive(int from, bool *ended)
{
	union {
		char buffer[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	char byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.buffer,
				 .msg_controllen = sizeof(control.buffer)};
	ssize_t got = recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	int fd;

	*ended = !got || (got < 0 && errno != EAGAIN && errno != EINTR);
	if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static void adopt(struct prb_gateway *g)
{
	struct sockaddr_storage peer = {};
	socklen_t length = sizeof(peer);
	bool ended = false;
	int fd;

	while (g->options.adopted >= 0 && (fd = receive(g->options.adopted, &ended)) >= 0)
		if (getpeername(fd, (struct sockaddr *)&peer, &length) ||
		    prb_mhd.add_connection(g->mhd, fd, (struct sockaddr *)&peer, length) != MHD_YES)
			close(fd);
	g->ends |= ended;
}

void prb_connections_tend(struct prb_gateway *g)
{
	adopt(g);
	for (size_t i = 0; i < g->connections.count; i++) {
		struct prb_connection *c = g->connections.items[i];

		if (!c->busy && g->now > c->since + REQUEST_SECONDS)
			drop(c);
	}
}

void prb_connections_end(struct prb_gateway *g)
{
	prb_requests_end(g);
	for (size_t i = 0; i < g->connections.count; i++)
		drop(g->connections.items[i]);
	prb_mhd.run(g->mhd);
}

void prb_connections_free(struct prb_gateway *g)
{
	for (size_t i = 0; i < g->connections.count; i++)
		free(g->connections.items[i]);
	prb_vec_free(&g->connections);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/socket_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "remote/address.h"
#include "base/cleanup.h"

enum { BACKLOG = 128 };

struct prb_error *prb_address_resolve(const char *text, bool passive, struct addrinfo **ret)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0)};
	struct prb_address address;
	char port[8];
	int rc;

	PRB_TRY(prb_address_parse(text, &address));
	snprintf(port, sizeof(port), "%d", address.port);
	rc = getaddrinfo(address.host, port, &hints, ret);
	if (rc)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_FAILED, "there is no host '%.100s': %s",
					 address.host,
					 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc)),
			"check the spelling");
	return NULL;
}

void prb_address_text(const struct sockaddr_storage *address, char *ret, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)address;

		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(ret, size, "[%s]:%u", host, ntohs(in6->sin6_port));
	} else {
		const struct sockaddr_in *in = (const void *)address;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(ret, size, "%s:%u", host, ntohs(in->sin_port));
	}
}

bool prb_address_is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
	return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

/** Listens at that address and no other; -1 with errno. */
static int listen_at(const struct addrinfo *info)
{
	prb_auto_close int fd =
		socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int yes = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (info->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, BACKLOG))
		return -1;
	return prb_steal_fd(&fd);
}

static struct prb_error *cannot_listen(int why, const char *address)
{
	struct prb_error *err = prb_error_os(why, "cannot listen at %.100s", address);

	if (why == EADDRINUSE)
		return prb_error_hint(
			err,
			"another program listens there; use another port, or 0 for a free one");
	if (why == EADDRNOTAVAIL)
		return prb_error_hint(err, "this machine has no such address");
	return err;
}

struct prb_error *prb_listener_open(const char *address, struct prb_listener *ret)
{
	struct sockaddr_storage bound = {};
	socklen_t length = sizeof(bound);
	struct addrinfo *list;

	PRB_TRY(prb_address_resolve(address, true, &list));
	/* Of a name that has several addresses, the first that works: no more than was named. */
	ret->fd = -1;
	for (const struct addrinfo *info = list; info && ret->fd < 0; info = info->ai_next)
		ret->fd = listen_at(info);

	int why = errno;

	freeaddrinfo(list);
	if (ret->fd < 0)
		return cannot_listen(why, address);
	getsockname(ret->fd, (struct sockaddr *)&bound, &length);
	prb_address_text(&bound, ret->address, sizeof(ret->address));
	ret->loopback = prb_address_is_loopback(&bound);
	return NULL;
}

void prb_listener_close(struct prb_listener *listener)
{
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/serve/user.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

/** Puts an address in the form of the kernel's message; false if it is not a loopback address. */
static bool put_address(const struct sockaddr_storage *address, uint32_t ip[4], uint16_t *port)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET6) {
		memcpy(ip, &in6->sin6_addr, 16);
		*port = in6->sin6_port;
		return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	}
	ip[0] = in->sin_addr.s_addr;
	*port = in->sin_port;
	return address->ss_family == AF_INET && ntohl(ip[0]) >> 24 == IN_LOOPBACKNET;
}

/** The user of the socket that is asked for, if that is still connected. */
static bool ask(const struct question *question, uid_t *ret)
{
	prb_auto_close int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} answer;
	const struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
	ssize_t length;

	if (fd < 0 || send(fd, question, sizeof(*question), 0) < 0)
		return false;
	/* The kernel answers within send(). */
	length = recv(fd, &answer, sizeof(answer), 0);
	if (length < (ssize_t)NLMSG_LENGTH(sizeof(*found)) ||
	    answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    found->idiag_state != TCP_ESTABLISHED)
		return false;
	*ret = found->idiag_uid;
	return true;
}

bool prb_serve_user(int fd, const struct sockaddr_storage *address, uid_t *ret)
{
	struct question question = {
		.header = {.nlmsg_len = sizeof(question),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = (uint8_t)address->ss_family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = UINT32_MAX,
			 .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
	};
	struct inet_diag_sockid *id = &question.body.id;
	struct sockaddr_storage own = {};
	socklen_t length = sizeof(own);

	if (getsockname(fd, (struct sockaddr *)&own, &length) ||
	    !put_address(address, id->idiag_src, &id->idiag_sport) ||
	    !put_address(&own, id->idiag_dst, &id->idiag_dport))
		return false;
	return ask(&question, ret);
}

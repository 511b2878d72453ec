/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whose a connection over the loopback interface is: any user of the machine can connect there. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/dap/dap.h"
#include "target/proc/inet_line.h"

enum { LINE = 512 };

/** As the kernel writes it. */
static struct prb_inet_end end_of(const struct sockaddr_storage *at)
{
	const struct sockaddr_in *four = (const void *)at;
	const struct sockaddr_in6 *six = (const void *)at;
	struct prb_inet_end ret = {};
	uint32_t words[4];

	if (at->ss_family == AF_INET) {
		snprintf(ret.address, sizeof(ret.address), "%08X", four->sin_addr.s_addr);
		ret.port = ntohs(four->sin_port);
		return ret;
	}
	memcpy(words, &six->sin6_addr, sizeof(words));
	snprintf(ret.address, sizeof(ret.address), "%08X%08X%08X%08X", words[0], words[1], words[2],
		 words[3]);
	ret.port = ntohs(six->sin6_port);
	return ret;
}

bool prb_dap_peer_is_ours(int fd)
{
	struct sockaddr_storage own = {}, peer = {};
	socklen_t own_length = sizeof(own), peer_length = sizeof(peer);
	struct prb_inet_end here, there;
	struct prb_inet_line each;
	char line[LINE];
	prb_auto_fclose FILE *file = NULL;

	if (getsockname(fd, (struct sockaddr *)&own, &own_length) ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_length) ||
	    (own.ss_family != AF_INET && own.ss_family != AF_INET6))
		return false;
	here = end_of(&own);
	there = end_of(&peer);
	file = fopen(own.ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
	while (file && fgets(line, sizeof(line), file))
		if (prb_inet_line_parse(line, &each) && prb_inet_ends_equal(&each.near, &there) &&
		    prb_inet_ends_equal(&each.far, &here))
			return each.uid == geteuid() || !each.uid;
	return false;
}

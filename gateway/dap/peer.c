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

enum { ADDRESS = 48, LINE = 512 };

/** As the kernel writes it: the words of the address in hexadecimal, a colon, the port. */
static void put_address(const struct sockaddr_storage *at, char ret[ADDRESS])
{
	const struct sockaddr_in *four = (const void *)at;
	const struct sockaddr_in6 *six = (const void *)at;
	uint32_t words[4];

	if (at->ss_family == AF_INET) {
		snprintf(ret, ADDRESS, "%08X:%04X", four->sin_addr.s_addr, ntohs(four->sin_port));
		return;
	}
	memcpy(words, &six->sin6_addr, sizeof(words));
	snprintf(ret, ADDRESS, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
		 ntohs(six->sin6_port));
}

bool prb_dap_peer_is_ours(int fd)
{
	struct sockaddr_storage own = {}, peer = {};
	socklen_t own_length = sizeof(own), peer_length = sizeof(peer);
	char here[ADDRESS], there[ADDRESS], line[LINE];
	prb_auto_fclose FILE *file = NULL;

	if (getsockname(fd, (struct sockaddr *)&own, &own_length) ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_length) ||
	    (own.ss_family != AF_INET && own.ss_family != AF_INET6))
		return false;
	put_address(&own, here);
	put_address(&peer, there);
	file = fopen(own.ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
	while (file && fgets(line, sizeof(line), file)) {
		char local[ADDRESS], remote[ADDRESS];
		unsigned uid;

		if (sscanf(line, " %*d: %47s %47s %*x %*s %*s %*s %u", local, remote, &uid) == 3 &&
		    !strcmp(local, there) && !strcmp(remote, here))
			return uid == geteuid() || !uid;
	}
	return false;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Connections that another process goes on with. */
#include <string.h>

#include "remote/serve/serve_private.h"

bool prb_serve_hand_over(int socket, int fd)
{
	union {
		char buffer[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.buffer,
				 .msg_controllen = sizeof(control.buffer)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	if (socket < 0)
		return false;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

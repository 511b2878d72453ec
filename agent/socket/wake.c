/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/socket/wake.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "agent/client/connection.h"
#include "agent/inside/libc.h"
#include "agent/socket/listen.h"

int prba_wake_open(struct prba_wake *w)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	memset(&w->address, 0, sizeof(w->address));
	w->address.sun_family = AF_UNIX;
	w->address_length = sizeof(w->address);
	/* Without a name, the kernel gives it one. */
	if (bind(fd, (struct sockaddr *)&w->address, offsetof(struct sockaddr_un, sun_path)) ||
	    getsockname(fd, (struct sockaddr *)&w->address, &w->address_length)) {
		int error = -errno;

		close(fd);
		return error;
	}
	w->fd = prba_move_fd(fd);
	w->inode = prba_inode(w->fd);
	return 0;
}

void prba_wake_close(struct prba_wake *w)
{
	if (w->fd >= 0 && prba_inode(w->fd) == w->inode)
		close(w->fd);
	w->fd = -1;
}

void prba_wake_send(const struct prba_wake *w)
{
	int error = errno, other = -1;
	bool ours = prba_inode(w->fd) == w->inode;

	if (!ours)
		other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	sendto(ours ? w->fd : other, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL,
	       (const struct sockaddr *)&w->address, w->address_length);
	if (other >= 0)
		close(other);
	errno = error;
}

bool prba_wake_take(struct prba_wake *w)
{
	char byte;

	do {
		if (prba_inode(w->fd) != w->inode)
			return false;
	} while (recv(w->fd, &byte, 1, MSG_DONTWAIT) >= 0);
	return true;
}

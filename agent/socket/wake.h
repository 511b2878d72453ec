/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Wakes the server's thread from any other thread.
 *
 * By a datagram to a socket that the kernel gave a name. The server's thread, which polls it, is
 * woken even when the program has closed the descriptor; and should the number be that of something
 * else by now, nothing but a socket of the same kind takes the datagram, and sends it to us.
 */
#ifndef PRB_AGENT_SOCKET_WAKE_H
#define PRB_AGENT_SOCKET_WAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct prba_wake {
	int fd;
	uint64_t inode; /**< of the descriptor */
	struct sockaddr_un address;
	socklen_t address_length;
};

/** 0 or -errno. */
int prba_wake_open(struct prba_wake *w);

void prba_wake_close(struct prba_wake *w);

/** Any thread; keeps errno. */
void prba_wake_send(const struct prba_wake *w);

/** Takes what was sent. False if the descriptor is not ours any more. */
bool prba_wake_take(struct prba_wake *w);

#endif

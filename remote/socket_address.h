/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Socket addresses of served processes, and listening at one. */
#ifndef PRB_REMOTE_SOCKET_ADDRESS_H
#define PRB_REMOTE_SOCKET_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/error.h"

/** Resolves `text`, for freeaddrinfo(); @p passive: to listen at. */
struct prb_error *prb_address_resolve(const char *text, bool passive,
				      struct addrinfo **ret) PRB_MUST_CHECK;

/** "127.0.0.1:9922", "[::1]:9922". */
void prb_address_text(const struct sockaddr_storage *address, char *ret, size_t size);

/** True if only this machine can be at the other end. */
bool prb_address_is_loopback(const struct sockaddr_storage *address);

/** A socket that listens. */
struct prb_listener {
	int fd;
	char address[80]; /**< where, as clients name it: "127.0.0.1:9922" */
	bool loopback;	  /**< only this machine reaches it */
};

/**
 * Listens at @p address: "HOST:PORT", "[ADDRESS]:PORT", or ":PORT", which is of 127.0.0.1; port 0
 * has the kernel choose one. PRB_ERROR_USAGE if it is none; the hint says what else to try.
 */
struct prb_error *prb_listener_open(const char *address, struct prb_listener *ret) PRB_MUST_CHECK;
void prb_listener_close(struct prb_listener *listener);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Finds the local user at the other end of a loopback connection. */
#ifndef PRB_REMOTE_SERVE_USER_H
#define PRB_REMOTE_SERVE_USER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/**
 * Asks the kernel which user made the connection @p fd from @p address. False if @p address is not
 * of the loopback, or the client has closed its end, or this cannot be known.
 */
bool prb_serve_user(int fd, const struct sockaddr_storage *address, uid_t *ret);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The agent's listening socket, and which users may connect.
 *
 * It is a file of mode 0600, `agent-PID.sock` in `$XDG_RUNTIME_DIR/probing` or in
 * `/tmp/probing-UID`, a folder of mode 0700 that belongs to the process's user; where none can be
 * made, an abstract name, `probing-UID-PID`, or with a random number in place of UID if another
 * user has that name. PID is what the process calls itself. There is no abstract name where the
 * kernel cannot distinguish other users from ours, as in a user namespace that has no number for
 * our user: there, if another user has taken the folder, it is another folder whose name begins the
 * same.
 */
#ifndef PRB_AGENT_SOCKET_LISTEN_H
#define PRB_AGENT_SOCKET_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct prba_socket {
	int fd;
	uint64_t inode; /**< of the descriptor */
	struct sockaddr_un address;
	socklen_t address_length;
	uint64_t file; /**< the inode of its file; 0 if it has none */
	uid_t owner;   /**< the process's user when it was opened */
	char note[96]; /**< whose folder was in the way of the usual place; "": none was */
};

/** Opens it, listening, in @p folder or, if that is NULL, where it should be. 0 or -errno. */
int prba_socket_open(struct prba_socket *s, const char *folder);

/** False if its file is gone, or the process has become another user's. */
bool prba_socket_is_there(const struct prba_socket *s);

/** Closes it and removes the file. */
void prba_socket_close(struct prba_socket *s);

/** Removes the file, if there is one. */
void prba_socket_unlink(struct prba_socket *s);

/**
 * Accepts a client: a descriptor, or -1 if there is none or it may not: only the user that the
 * process runs as, and root.
 */
int prba_socket_accept(struct prba_socket *s);

/** Moves a descriptor out of the way of programs that count on the low numbers. */
int prba_move_fd(int fd);

#endif

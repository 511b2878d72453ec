/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The open files of a target, each in parts: its kind, its position, and its peer.
 *
 * Parts that only a live process has (sizes, sockets, peers) are noted while a snapshot is
 * recorded, and read from it.
 *
 * Threading: one thread at a time. Strings are owned by the struct they are in.
 */
#ifndef PRB_DUMP_WAITS_DESCRIPTORS_H
#define PRB_DUMP_WAITS_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "target/target.h"

/** Shared by all descriptors of a target: tables of sockets, mounts, and holders of pipes. */
struct prb_descriptors;

/** Borrows the target. Caches its lookups: make one per instant. */
struct prb_error *prb_descriptors_create(struct prb_target *t,
					 struct prb_descriptors **ret) PRB_MUST_CHECK;
void prb_descriptors_destroy(struct prb_descriptors *descriptors);

/** Parts to read besides the link; each costs at least a system call. */
enum prb_descriptor_part {
	PRB_DESCRIPTOR_INFO = 1 << 0,	/**< position, flags */
	PRB_DESCRIPTOR_STAT = 1 << 1,	/**< size, inode of a file, what kind of file it is */
	PRB_DESCRIPTOR_SOCKET = 1 << 2, /**< of a socket: protocol, addresses, state */
	PRB_DESCRIPTOR_PEER = 1 << 3,	/**< processes at the other end: may search all processes */
	PRB_DESCRIPTOR_ROOM =
		1 << 4, /**< room on the file system, of one that is open for writing */
};

/** Of a socket; "" if it has none. */
enum prb_socket_field {
	PRB_SOCKET_PROTOCOL, /**< "tcp", "tcp6", "udp", "unix", "netlink", … */
	PRB_SOCKET_TYPE,     /**< "stream", "datagram", "seqpacket", "raw" */
	PRB_SOCKET_STATE,    /**< "established", "listen", …; of TCP and unix sockets */
	PRB_SOCKET_LOCAL_ADDRESS,
	PRB_SOCKET_LOCAL_PORT,
	PRB_SOCKET_REMOTE_ADDRESS,
	PRB_SOCKET_REMOTE_PORT,
	PRB_SOCKET_FIELDS,
};

struct prb_descriptor {
	int fd;
	const char *kind;    /**< "file", "directory", "socket", "pipe", "epoll", …; static */
	struct prb_str path; /**< from its link: a path, "socket:[123]"; without "(deleted)" */
	bool deleted;
	uint64_t inode; /**< 0 if unknown */

	bool info_known;
	uint64_t position; /**< bytes */
	unsigned flags;	   /**< O_… */
	bool size_known;
	uint64_t size; /**< bytes; of regular files only */

	bool room_known;
	uint64_t room, room_of_root; /**< bytes that are free, and those with root's reserve */
	uint64_t capacity;	     /**< bytes of that file system */

	struct prb_str socket_text;
	const char *socket[PRB_SOCKET_FIELDS]; /**< NULL unless it is a known socket */
	struct prb_str peer;		       /**< "4711 (cat)", "" if unknown */
	struct prb_str reason;		       /**< why a part is missing, or "" */
};

/** Reads the requested parts; PRB_ERROR_NOT_FOUND if it is not open (any more). */
struct prb_error *prb_descriptor_read(struct prb_descriptors *descriptors, int fd, unsigned parts,
				      struct prb_descriptor *ret) PRB_MUST_CHECK;
void prb_descriptor_deinit(struct prb_descriptor *descriptor);

#endif

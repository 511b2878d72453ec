/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Registry of the processes that are served on this machine, and their addresses.
 *
 * A server has a file `serve-PID-SERVER` with its address in $XDG_RUNTIME_DIR/probing or
 * /tmp/probing-UID, a folder of mode 0700, and holds its lock: a file whose lock is free is what is
 * left of a server that was killed. There is no secret in it.
 */
#ifndef PRB_REMOTE_SERVE_KNOWN_H
#define PRB_REMOTE_SERVE_KNOWN_H

#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

/** The file of this process as a server. Starts as PRB_SERVE_UNKNOWN. */
struct prb_serve_known {
	char *path;
	int fd;
};
#define PRB_SERVE_UNKNOWN \
	{                 \
		.fd = -1  \
	}

/** Makes it known that @p pid is served at @p address; removes what others left. */
struct prb_error *prb_serve_known_add(struct prb_serve_known *known, pid_t pid,
				      const char *address) PRB_MUST_CHECK;
void prb_serve_known_remove(struct prb_serve_known *known);

/** Appends the addresses at which @p pid is served by its user or ours, divided by spaces. */
void prb_serve_known_find(pid_t pid, struct prb_str *ret);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A child process without rights, for libraries that parse untrusted files.
 *
 * libbfd and libdwarf are large and not made for hostile input. When root reads a file that another
 * user could have made, a fault in them must not become a fault of root's process. So a child is
 * forked. It has an unprivileged user, no groups, no capabilities, and limits on CPU time and
 * memory. A seccomp filter leaves it memory, one socket to us, and reading of one file that is open
 * already. Faults, endless loops and takeovers stay in there.
 *
 * The child answers requests until its end of the socket is closed. It dies with the thread that
 * started it. Its output is as untrusted as the file: this interface bounds its length, and the
 * caller checks the content. The child shares our memory as of the fork, so requests and the
 * context can hold pointers; what it changes stays in the child.
 *
 * Cost: 0.6 ms for a small process, to start and end it; a request takes some 10 µs.
 *
 * Threading: one thread at a time per jail. Other threads may exist at the fork: glibc keeps
 * malloc() usable in the child; the caller must hold all other locks that the work needs.
 */
#ifndef PRB_BASE_JAIL_H
#define PRB_BASE_JAIL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

struct prb_jail;

enum {
	PRB_JAIL_REQUEST_MAX = 4096, /* bytes */
	PRB_JAIL_PATIENCE = 30000,   /* milliseconds that callers wait by default, in all */
};

/**
 * Answers one request in the child: appends to @p ret. An error reaches the parent with its message
 * and, if that is PRB_ERROR_NOT_FOUND or PRB_ERROR_UNSUPPORTED, with its code; else it becomes
 * PRB_ERROR_BAD_DATA. Log messages go nowhere.
 */
typedef struct prb_error *prb_jail_work(void *context, const void *request, size_t length,
					struct prb_str *ret);

struct prb_jail_spec {
	const char *name; /**< of the file, for messages; copied */
	prb_jail_work *work;
	void *context;	      /**< passed to @p work */
	int file;	      /**< the only descriptor that it may read; -1: none */
	unsigned cpu_seconds; /**< of all requests together; 0: 10 */
	size_t answer_max;    /**< bytes of one answer; 0: 8 MiB */
};

/** Forks the child, which waits for requests. Errors of confining it come with the first one. */
struct prb_error *prb_jail_start(const struct prb_jail_spec *spec,
				 struct prb_jail **ret) PRB_MUST_CHECK;

/**
 * Sends a request and appends the answer to @p ret. Waits at most *@p patience milliseconds, and
 * takes from it what it waited. PRB_ERROR_BAD_DATA if the child crashed or broke a rule,
 * PRB_ERROR_TIMEOUT if it took too long, or there was no patience left; it is gone then, and each
 * later request fails as well.
 */
struct prb_error *prb_jail_ask(struct prb_jail *jail, const void *request, size_t length,
			       int *patience, struct prb_str *ret) PRB_MUST_CHECK;

/** Kills and reaps the child; NULL is allowed. */
void prb_jail_end(struct prb_jail *jail);

static inline void prb_jail_guard(struct prb_jail **jail)
{
	prb_jail_end(*jail);
}
#define prb_auto_jail __attribute__((cleanup(prb_jail_guard)))

#endif

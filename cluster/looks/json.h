/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Looks at the ranks of one machine as JSON, and those of several machines put together.
 *
 * `probing cluster look` prints them on each host; the host that asked merges them into one job.
 * A host draws its conclusions from several looks, and sends them with the last one only.
 * Answers come from machines that may be hostile, and from files: everything is checked and
 * bounded, and a malformed answer is left out with the reason.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_LOOKS_JSON_H
#define PRB_CLUSTER_LOOKS_JSON_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "cluster/looks/seen.h"

/** Appends the last look at @p job as one JSON object; with @p all, all threads of the ranks, and
 * with @p redact, without what may be secret. */
void prb_looks_write(const struct prb_job *job, const struct prb_round *round, bool all,
		     bool redact, struct prb_str *s);

/** A job that is put together. */
struct prb_looks;

struct prb_error *prb_looks_create(struct prb_looks **ret) PRB_MUST_CHECK;
/** NULL is none. */
void prb_looks_destroy(struct prb_looks *looks);

/**
 * Adds what @p host printed, or with NULL what a bundle holds, which names its host itself. *why is
 * set to the reason if it cannot be used, for the caller to free. An answer without ranks of the
 * job is no error. PRB_ERROR_USAGE if hosts have ranks of different jobs.
 */
struct prb_error *prb_looks_add(struct prb_looks *looks, const char *host, const char *text,
				size_t length, char **why) PRB_MUST_CHECK;

/** Notes why pods of the job do not run: ranks that nobody has are in one of them. */
struct prb_error *prb_looks_note_end(struct prb_looks *looks, const char *why) PRB_MUST_CHECK;

/** Notes that a host has not answered: then ranks that no host has are unknown, else absent. */
void prb_looks_lack(struct prb_looks *looks);

/**
 * True if the host that was added last has a process of that rank, and its snapshot was not claimed
 * before.
 */
bool prb_looks_claim(struct prb_looks *looks, long rank);

/**
 * Makes one job and one look of them. @p everywhere: the user named the hosts, so all hosts of the
 * job were asked. PRB_ERROR_NOT_FOUND if there is no rank. Once.
 */
struct prb_error *prb_looks_finish(struct prb_looks *looks, bool everywhere, struct prb_job *job,
				   struct prb_round *round) PRB_MUST_CHECK;

/** A host that gave no answer, as a document says. Both texts are owned, and not escaped. */
struct prb_silent {
	char *host, *why;
};
struct prb_silents {
	PRB_VEC(struct prb_silent) list;
};

/** Those of the documents that were added so far; the looks'. */
const struct prb_silents *prb_looks_silent(const struct prb_looks *looks);

/**
 * Appends a document that says why @p host gave no answer, with the @p count @p ranks that it is
 * known to have: one line.
 */
void prb_looks_write_silent(struct prb_str *s, const char *job, uid_t uid, const char *host,
			    const char *why, const long *ranks, size_t count);

/** Appends @p text, an object that prb_looks_write() wrote, with the name of its host. */
void prb_looks_name(struct prb_str *s, const char *host, const char *text, size_t length);

#endif

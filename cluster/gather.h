/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs probing on many hosts through ssh, side by side, and collects what it prints.
 *
 * ssh is the user's own, with its configuration, keys and agent; it asks for nothing
 * (BatchMode). A host that does not answer in time is one error, and never delays the others.
 *
 * Threading: one thread; children are reaped by their pid.
 */
#ifndef PRB_CLUSTER_GATHER_H
#define PRB_CLUSTER_GATHER_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/hosts.h"

struct prb_answer {
	const char *host;   /**< borrowed from the hosts */
	struct prb_str out; /**< what it printed, at most 256 MiB */
	char *error;	    /**< why there is no answer, one line; NULL: there is one */
};

struct prb_answers {
	PRB_VEC(struct prb_answer) list; /**< one for each host, in their order */
};

/**
 * Runs "probing WORDS…" on each of @p hosts, on at most 64 at once. @p words ends with NULL.
 * @p deadline_s: seconds that each host has, from the start of its ssh.
 */
struct prb_error *prb_gather(const struct prb_hosts *hosts, const char *const *words,
			     double deadline_s, struct prb_answers *ret) PRB_MUST_CHECK;
void prb_answers_deinit(struct prb_answers *answers);
#define prb_auto_answers __attribute__((cleanup(prb_answers_deinit)))

#endif

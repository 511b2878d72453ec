/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A job that hangs, as a daemon reports it: the verdict that `probing cluster hang` gives in
 * a process of its own, so that a rank which makes its reader crash or wait does no harm to the
 * daemon.
 *
 * Threading: one thread at a time. Texts are the incident's, not escaped.
 */
#ifndef PRB_CLUSTER_WATCH_INCIDENT_H
#define PRB_CLUSTER_WATCH_INCIDENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "cluster/jobs/rank_set.h"

/** How a rank has ended, "killed by SIGKILL"; @p known by a status or a log. */
struct prb_incident_end {
	long rank;
	char *how;
	bool known;
};

struct prb_incident_ends {
	PRB_VEC(struct prb_incident_end) list;
};

void prb_incident_ends_deinit(struct prb_incident_ends *ends);

struct prb_incident {
	char *job, *verdict, *sentence, *evidence, *rests_on, *confidence, *wrong_if, *next;
	struct prb_rank_set ranks; /**< to blame */
	struct prb_incident_ends ends;
	struct prb_str text; /**< the whole verdict as JSON, one line */
};

void prb_incident_deinit(struct prb_incident *incident);
#define prb_auto_incident __attribute__((cleanup(prb_incident_deinit)))

/**
 * Judges a job, which @p job names or the pid of a rank, and saves its ranks to the file @p save.
 * @p hosts: all of its machines, through ssh; NULL: this one. @p job may be a bundle, with
 * @p save NULL.
 */
struct prb_error *prb_incident_judge(const char *job, const char *hosts, const char *save,
				     struct prb_incident *ret) PRB_MUST_CHECK;

/** True if the verdict is that the job hangs; @p waits: a rank is in a collective. */
bool prb_incident_hangs(const struct prb_incident *incident, bool waits);

/**
 * Looks at the ranks of this machine of the job of @p pid, and saves them to the file @p save. *ret
 * is what prb_looks_write() makes of them.
 */
struct prb_error *prb_incident_look(pid_t pid, const char *save,
				    struct prb_str *ret) PRB_MUST_CHECK;

/**
 * Asks which rank of the job of @p pid the others wait for; *sentence is the caller's, NULL: none
 * surely. *rank: that one.
 */
struct prb_error *prb_incident_find_slow(pid_t pid, char **sentence, long *rank) PRB_MUST_CHECK;

/** Appends JSON for a webhook: the verdict, the host, the seconds waited and the saved file. */
void prb_incident_put(const struct prb_incident *incident, const char *host, double waited,
		      const char *saved, struct prb_str *s);

/** Appends a text as the value of a label of Prometheus, in quotes; long ones are cut. */
void prb_incident_put_label(struct prb_str *s, const char *text);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What daemons of other machines report of their ranks, as files of one folder: the gateway
 * keeps them, and the daemon that judges reads them (cluster/watch/reported.h).
 *
 * A report is a look as prb_looks_write() writes it, with the name of its host. Each host has two
 * files for a job: JOB-HOST.pulse, which is replaced every ten seconds, has no stacks, but how long
 * the ranks have not moved and have waited; JOB-HOST.look has their stacks. A look is taken only
 * while a file JOB.wanted is there. JOB and HOST are hashes.
 *
 * Reports are untrusted: anybody with the gateway's token can report anything about any host.
 *
 * Threading: one process writes reports, and one reads them.
 */
#ifndef PRB_CLUSTER_WATCH_REPORTS_H
#define PRB_CLUSTER_WATCH_REPORTS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "cluster/looks/vigil.h"

/** The variable by which the part of the daemon that serves knows the folder. */
#define PRB_REPORTS_VARIABLE "PROBING_JOBS_REPORTS"
/** The folder, in that of the state. */
#define PRB_REPORTS_FOLDER "reports"

/** How the names of the files of a host end. */
#define PRB_REPORT_PULSE ".pulse"
#define PRB_REPORT_LOOK ".look"

/** Size of a name of hashes, "JOB-HOST.pulse", with its NUL. */
enum { PRB_REPORT_NAME = 48 };

/**
 * Keeps a report in @p folder. *wanted: its stacks are asked for. PRB_ERROR_USAGE for a text that
 * is no report; a conflict (base/conflict.h) if the folder is full. A look that nobody has asked
 * for is not kept.
 */
struct prb_error *prb_reports_keep(int folder, const char *text, size_t length,
				   bool *wanted) PRB_MUST_CHECK;

/** The files of @p folder, for the caller to close; NULL with errno if they cannot be listed. */
DIR *prb_reports_list(int folder);

/** True if the gateway, whose answer to a report this is, asks for stacks. */
bool prb_report_is_wanted(const struct prb_str *answer);

/** The hash of a job, "0123456789abcdef". */
void prb_report_job(const char *job, uid_t uid, char ret[PRB_REPORT_NAME]);

/** Asks all hosts for looks at a job; older ones are removed. */
struct prb_error *prb_reports_want(int folder, const char *job) PRB_MUST_CHECK;
/** Asks no more. */
void prb_reports_want_no_more(int folder, const char *job);

/** Appends the pulse of the vigil's job on @p host; @p ended: its ranks are gone. */
void prb_report_put_pulse(struct prb_str *s, const struct prb_vigil *vigil, const char *host,
			  bool ended);

#endif

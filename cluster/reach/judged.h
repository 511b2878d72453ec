/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What `probing why --json` says at another machine. The answer is untrusted: its texts are
 * cut and escaped, and its findings are of rules that we know.
 *
 * Threading: any thread.
 */
#ifndef PRB_CLUSTER_REACH_JUDGED_H
#define PRB_CLUSTER_REACH_JUDGED_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "judge/finding.h"

/** A process, as that machine judges it. Texts are owned, and escaped. */
struct prb_judged {
	pid_t pid;	  /**< there; 0: a file */
	char *command;	  /**< its command line */
	char *doing;	  /**< or NULL */
	char *unreadable; /**< why it was not judged, or NULL */
	struct prb_findings findings;
};

struct prb_judged_list {
	PRB_VEC(struct prb_judged) list;
};

/** Appends the processes of one answer. PRB_ERROR_BAD_DATA if it is none. */
struct prb_error *prb_judged_read(const struct prb_str *answer,
				  struct prb_judged_list *ret) PRB_MUST_CHECK;
void prb_judged_deinit(struct prb_judged_list *list);

#endif

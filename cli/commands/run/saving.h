/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What `probing watch` has still to save: reports as text, and bundles. They take seconds
 * on a busy machine, so a verdict is printed before, and other processes are looked at between two.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLI_COMMANDS_RUN_SAVING_H
#define PRB_CLI_COMMANDS_RUN_SAVING_H

#include "cli/commands/run/watched.h"

/** A verdict whose report is not yet saved. */
struct prb_unsaved {
	pid_t pid;
	unsigned number; /**< of the process's reports, from 1 */
	struct prb_watched_news news;
};

/** Starts with the first two members set. */
struct prb_saving {
	const char *folder; /**< borrowed */
	bool redact;
	PRB_VEC(struct prb_unsaved) list;
};

/** Notes what @p news has found, and takes it over; nothing where there are enough of @p w. */
struct prb_error *prb_saving_add(struct prb_saving *saving, struct prb_watched *w,
				 struct prb_watched_news *news) PRB_MUST_CHECK;
/**
 * Saves the oldest; what cannot be saved is warned about. *pid: the process; *verdict: static;
 * *name: the bundle, the caller's, or NULL if no process of it could be read.
 */
struct prb_error *prb_saving_next(struct prb_saving *saving, pid_t *pid, const char **verdict,
				  char **name) PRB_MUST_CHECK;
void prb_saving_deinit(struct prb_saving *saving);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A process that `probing watch` looks at, and what was found so far.
 *
 * A look costs one system call for each of its processes. They are read only when they have not run
 * for a while, and now and then while they hardly do; ever more rarely if nothing was found. A weak
 * verdict is looked at again, too: a stronger one may come.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLI_COMMANDS_RUN_WATCHED_H
#define PRB_CLI_COMMANDS_RUN_WATCHED_H

#include "cli/commands/run/standstill.h"

struct prb_watched {
	pid_t pid;
	struct prb_tree tree;
	double moved, read_at, pause; /**< it ran last; is read next; and how long after that */
	double ran;		      /**< processor time since it was read, s */
	double looked_at;	      /**< when it was read */
	bool still;		      /**< it has stood still, and was read meanwhile */
	bool idle;		      /**< it has not run since it was read, and no more is asked */
	bool near_limit;	      /**< of its control group's memory, at the last look */
	/* The verdict of the last reading. */
	const char *verdict; /**< static; NULL: none */
	size_t size;	     /**< threads that it is about */
	enum prb_confidence strength;
	/* The verdict that was reported last. */
	const char *reported;
	size_t reported_size;
	enum prb_confidence reported_strength;
	unsigned saved;
};

/** What a look has found, for the caller to report. */
struct prb_watched_news {
	const char *verdict; /**< static; NULL: nothing new */
	int code;	     /**< as of `probing check` */
	struct prb_str sentence;
	struct prb_standstill still;
};
void prb_watched_news_deinit(struct prb_watched_news *news);
#define prb_auto_news __attribute__((cleanup(prb_watched_news_deinit)))

/**
 * Looks at a process at the time @p now (prb_clock_seconds()). @p memory: at its control group,
 * too. *gone: it has ended.
 */
struct prb_error *prb_watched_look(struct prb_watched *w, double now, double hang, bool memory,
				   bool *gone, struct prb_watched_news *news) PRB_MUST_CHECK;
void prb_watched_deinit(struct prb_watched *w);

#endif

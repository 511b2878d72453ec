/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A process of ours that stays when the command has ended: in a session of its own, with only
 * the descriptors that it is given.
 *
 * Threading: only while this process has a single thread, as it forks.
 */
#ifndef PRB_COMMAND_BACKGROUND_H
#define PRB_COMMAND_BACKGROUND_H

#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

enum {
	PRB_BACKGROUND_KEPT = 3, /**< the number of the first descriptor that is kept */
	PRB_BACKGROUND_MOST = 4, /**< so many at most */
};

struct prb_background {
	const char *name; /**< "the server", for messages */
	/** Copies of these have the numbers from PRB_BACKGROUND_KEPT on there. */
	int kept[PRB_BACKGROUND_MOST];
	size_t kept_count;
	/** The body of the process; does not return. It is to call prb_background_report() once. */
	void (*run)(void *context, int report);
	void *context;
};

/** Starts it, and waits for its report, of which the text is appended to @p said. */
struct prb_error *prb_background_start(const struct prb_background *background,
				       struct prb_str *said) PRB_MUST_CHECK;

/** To the command that started it: @p err, which remains the caller's, or that all is well. */
void prb_background_report(int report, const struct prb_error *err, const char *text);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The overview of all targets, kept fresh by a command `overview --watch` that runs while
 * there are requests: each is answered at once, with the command's last output.
 *
 * Threading: as the gateway's.
 */
#ifndef PRB_GATEWAY_TARGETS_OVERVIEW_H
#define PRB_GATEWAY_TARGETS_OVERVIEW_H

#include "base/error.h"
#include "gateway/targets/child.h"
#include "gateway/targets/served.h"

/** Starts with prb_overview_keeper_init(). */
struct prb_overview_keeper {
	struct prb_child child;
	struct prb_str in;	   /**< what it has printed of the next look */
	struct prb_str last;	   /**< the last look, as it is answered; empty: none */
	bool pending;		   /**< it says that some are still to be judged */
	double began, asked, came; /**< monotonic: the command, the last request, the last look */
};
void prb_overview_keeper_init(struct prb_overview_keeper *keeper);
void prb_overview_keeper_deinit(struct prb_overview_keeper *keeper);

/**
 * Makes sure that the command runs. *ret: the last look, or NULL if there is none yet: ask again.
 * @p early: also one before all are judged. The error is the command's.
 */
struct prb_error *prb_overview_keeper_ask(struct prb_overview_keeper *keeper,
					  const struct prb_served *served, bool early, double now,
					  const struct prb_str **ret) PRB_MUST_CHECK;

/** Reads the command's output; ends a command that is not asked any more, or is stuck. */
void prb_overview_keeper_tend(struct prb_overview_keeper *keeper, const struct prb_served *served,
			      double now);

#endif

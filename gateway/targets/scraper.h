/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The metrics of the served processes, from a command `export prometheus --each-line` that
 * runs as long as somebody asks now and then: it reads a process again only if that has run
 * meanwhile.
 *
 * Threading: as the gateway's.
 */
#ifndef PRB_GATEWAY_TARGETS_SCRAPER_H
#define PRB_GATEWAY_TARGETS_SCRAPER_H

#include "base/error.h"
#include "gateway/targets/child.h"
#include "gateway/targets/served.h"

/** Starts with prb_scraper_init(). */
struct prb_scraper {
	struct prb_child child;
	struct prb_str in;   /**< what it has printed of the next answer */
	struct prb_str last; /**< the last answer; empty: none */
	bool reads;	     /**< it makes an answer */
	double began, came;  /**< monotonic: the next answer, the last one */
	double asked;	     /**< monotonic: the last request */
};
void prb_scraper_init(struct prb_scraper *scraper);
void prb_scraper_deinit(struct prb_scraper *scraper);

/**
 * *ret: an answer that was made at @p since (monotonic) or later; NULL: it is being made, ask
 * again. The error is the command's; PRB_ERROR_NO_PROCESS if no process is served.
 */
struct prb_error *prb_scraper_ask(struct prb_scraper *scraper, const struct prb_served *served,
				  double since, double now,
				  const struct prb_str **ret) PRB_MUST_CHECK;

/** Reads the command's output; ends a command that is not asked any more, or is stuck. */
void prb_scraper_tend(struct prb_scraper *scraper, double now);

#endif

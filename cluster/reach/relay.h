/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A tree of two levels for thousands of hosts: some of them, the relays, ask the others. The
 * hosts of a relay that fails are asked directly.
 *
 * A relay runs `probing cluster relay --hosts=LIST -- WORDS`. For each host of its list it
 * prints one line of JSON, {"host": place in the list, "length": bytes, "error": why or null,
 * "waited": seconds}, and
 * then that many bytes: what "probing WORDS" has printed there. A relay can lie about its hosts,
 * and about no others.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_REACH_RELAY_H
#define PRB_CLUSTER_REACH_RELAY_H

#include "base/error.h"
#include "cluster/reach/gather.h"
#include "cluster/reach/reach.h"

/**
 * Does what prb_gather() does for @p answers, one for each host, through relays. Each host runs
 * "probing WORDS"; @p words ends with NULL.
 */
struct prb_error *prb_relay_gather(const struct prb_reach *reach, const char *const *words,
				   struct prb_answers *answers,
				   const struct prb_gather_options *options) PRB_MUST_CHECK;

/**
 * The part of a relay: runs "probing WORDS" itself for the first of @p hosts, through @p reach on
 * the others, and prints what they answer.
 */
struct prb_error *prb_relay_serve(const struct prb_reach *reach, const struct prb_hosts *hosts,
				  char *const *words, double deadline_s) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Asks the flight recorders of the ranks that a look has read. One thread at a time. */
#ifndef PRB_CLUSTER_LOOKS_FLIGHT_ASK_H
#define PRB_CLUSTER_LOOKS_FLIGHT_ASK_H

#include "base/error.h"
#include "cluster/looks/seen.h"

/**
 * Asks the flight recorder of each rank that was read: `flight` and `no_flight`. @p before: a round
 * in which they were asked already, or NULL; ranks that had no agent then have none.
 */
struct prb_error *prb_round_ask_recorders(struct prb_round *round, struct prb_watch *watches,
					  const struct prb_round *before) PRB_MUST_CHECK;

#endif

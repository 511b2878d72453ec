/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What `probing cluster ship` and `probing node` say at their ends. */
#ifndef PRB_CLI_COMMANDS_CLUSTER_SHIP_END_H
#define PRB_CLI_COMMANDS_CLUSTER_SHIP_END_H

#include "clickhouse/ship.h"

/** Prints to stderr how much was sent, and what was not. */
void prb_ship_tell_end(const struct prb_ship_sums *sums);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the tables of waits: the target's threads, and the processes they wait for. */
#ifndef PRB_SQL_TABLES_SHARED_PEERS_H
#define PRB_SQL_TABLES_SHARED_PEERS_H

#include "judge/peers.h"
#include "sql/spec/table.h"

/**
 * The target is the first process of *ret, which the instant owns. NULL, with a note, if it is no
 * live process of this machine.
 */
struct prb_error *prb_peers_of(struct prb_scan *scan, struct prb_peers **ret) PRB_MUST_CHECK;

/** Notes that the table has no rows, if @p rows is 0. */
void prb_peers_note_none(struct prb_scan *scan, size_t rows);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the tables of inference servers: the target's process, read once per statement.
 */
#ifndef PRB_SQL_TABLES_SHARED_SERVERS_H
#define PRB_SQL_TABLES_SHARED_SERVERS_H

#include "inference/server.h"
#include "sql/spec/table.h"

/**
 * What the target has as a process of a server; *ret is NULL, and the scan has a note that says
 * why, if it is none, or what the table is about is missing.
 */
struct prb_error *prb_server_of(struct prb_scan *scan,
				const struct prb_server_process **ret) PRB_MUST_CHECK;

/** Puts the seconds since @p time, an epoch's; 0 of one that came during the reading; NULL if it is
 * not known, or in the future. */
void prb_put_age(struct prb_scan *scan, unsigned column, double time);

#endif

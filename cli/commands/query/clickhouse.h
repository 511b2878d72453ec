/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `probing clickhouse://… query`: a statement for a ClickHouse server. */
#ifndef PRB_CLI_COMMANDS_QUERY_CLICKHOUSE_H
#define PRB_CLI_COMMANDS_QUERY_CLICKHOUSE_H

#include "base/error.h"
#include "base/str.h"
#include "cli/commands/query/query.h"

/**
 * Translates the statement, runs it there and prints its rows as @p query says. @p timeout_s: 0
 * for none.
 */
struct prb_error *prb_query_clickhouse(struct prb_query *query, const char *url,
				       const struct prb_str *sql, double timeout_s) PRB_MUST_CHECK;

#endif

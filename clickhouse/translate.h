/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Translates a statement of our SQL for ClickHouse: names of tables, and what is written in
 * another way there.
 *
 *     now(), interval '5 minutes'             seconds; now() is a whole second there
 *     hour(timestamp), minute(), day(), …     toHour(toDateTime(timestamp, 'UTC')), …
 *     date_trunc('hour', timestamp)           toStartOfHour(…); minute to year, no weeks
 *     percentile_cont(0.9) WITHIN GROUP (…)   quantile(0.9)(x), exact up to 8,192 rows
 *     count(*) FILTER (WHERE x), sum(y) …     countIf(x), sumIf(y, x)
 *     WITH a AS (SELECT …) SELECT … FROM a    the subquery in place of its name (for 18.16)
 *     group_concat(x, ' ')                    arrayStringConcat(groupArray(toString(x)), ' ')
 *     iif(), instr(), total()                 if(), position(), sum()
 *     CAST(x AS REAL), INTEGER, TEXT          Float64, Int64, String
 *     SHOW TABLES                             the tables of the database, as we call them
 *     … AND step > 5                          also ifNull(step, -1) > 5, by which rows are ordered
 *
 * What is not known is handed on as it is, so that all of ClickHouse's own SQL can be used; what
 * would mean something else there is refused.
 *
 * Threading: any thread.
 */
#ifndef PRB_CLICKHOUSE_TRANSLATE_H
#define PRB_CLICKHOUSE_TRANSLATE_H

#include "base/error.h"
#include "base/str.h"
#include "clickhouse/url.h"

/**
 * Appends the one statement of @p sql; tables show the rows of the address's job only, if it has
 * one. PRB_ERROR_USAGE says what cannot be translated.
 */
struct prb_error *prb_clickhouse_translate(const struct prb_clickhouse_url *url, const char *sql,
					   size_t length, struct prb_str *ret) PRB_MUST_CHECK;

#endif

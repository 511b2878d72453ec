/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Translates a statement of our SQL for ClickHouse: names of tables, and what is written in
 * another way there. docs/clickhouse.md lists it.
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

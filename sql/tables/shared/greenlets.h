/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the tables of greenlets: read once per statement. */
#ifndef PRB_SQL_TABLES_SHARED_GREENLETS_H
#define PRB_SQL_TABLES_SHARED_GREENLETS_H

#include "sql/spec/table.h"
#include "sql/tables/shared/interpreters.h"
#include "values/greenlets.h"

/** Those of one interpreter. */
struct prb_greenlets_of {
	const struct prb_interpreter *interpreter;
	struct prb_greenlets greenlets;
};

/**
 * Calls @p put for each greenlet, in pages: it appends the rows of one. A note says if some may be
 * missing, or if there are none.
 */
struct prb_error *prb_greenlets_scan(
	struct prb_scan *scan, const char *table,
	struct prb_error *(*put)(struct prb_scan *scan, const struct prb_greenlet *greenlet,
				 const struct prb_interpreter *of)) PRB_MUST_CHECK;

#endif

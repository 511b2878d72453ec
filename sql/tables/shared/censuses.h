/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the tables that need a census: taken once per statement, one for each
 * interpreter, with the modules of torch in it.
 */
#ifndef PRB_SQL_TABLES_SHARED_CENSUSES_H
#define PRB_SQL_TABLES_SHARED_CENSUSES_H

#include "sql/tables/shared/interpreters.h"
#include "values/census/torch_modules.h"

struct prb_table_census {
	const struct prb_interpreter *interpreter;
	struct prb_census *census;
	struct prb_torch_modules modules;
};

struct prb_table_censuses {
	PRB_VEC(struct prb_table_census) list;
};

/** They live as long as the statement's instant. Possibly missing objects are noted. */
struct prb_error *prb_censuses_read(struct prb_scan *scan,
				    const struct prb_table_censuses **ret) PRB_MUST_CHECK;

/** Notes that the table is empty, since no @p what was found, if @p rows is 0. */
void prb_note_if_empty(struct prb_scan *scan, size_t rows, const char *what);

/** The way to an object. */
struct prb_error *prb_put_holder(struct prb_scan *scan, unsigned column,
				 const struct prb_table_census *c, uint32_t object) PRB_MUST_CHECK;

#endif

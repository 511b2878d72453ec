/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the tables of asyncio tasks: the tasks, read once per statement. */
#ifndef PRB_SQL_TABLES_SHARED_ASYNCIO_H
#define PRB_SQL_TABLES_SHARED_ASYNCIO_H

#include "dump/asyncio_tasks.h"
#include "sql/spec/table.h"

struct prb_asyncio_readings {
	PRB_VEC(struct prb_asyncio_reading *) list; /**< one for each Python in the target */
};

/** The tasks of all runtimes; notes what keeps some from being listed. */
struct prb_error *prb_asyncio_scan(struct prb_scan *scan,
				   const struct prb_asyncio_readings **ret) PRB_MUST_CHECK;

#endif

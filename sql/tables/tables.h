/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The specs, one per file of this folder; registry.c lists them. */
#ifndef PRB_SQL_TABLES_H
#define PRB_SQL_TABLES_H

#include "sql/table.h"

extern const struct prb_table prb_table_main_generate_series;
extern const struct prb_table prb_table_native_backtrace;
extern const struct prb_table prb_table_python_backtrace;
extern const struct prb_table prb_table_python_locals;
extern const struct prb_table prb_table_python_stacks;
extern const struct prb_table prb_table_python_threads;

#endif

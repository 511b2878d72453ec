/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by tables of the machine, which describe the machine that we run on, at this
 * moment.
 */
#ifndef PRB_SQL_TABLES_SHARED_MACHINE_H
#define PRB_SQL_TABLES_SHARED_MACHINE_H

#include "base/str.h"
#include "sql/spec/table.h"

/**
 * False, with a note, if all targets are cores or snapshots: such queries are not about this
 * machine.
 */
bool prb_scan_machine(struct prb_scan *scan);

/** Reads a file of ours whole. */
struct prb_error *prb_machine_file(const char *path, struct prb_str *ret) PRB_MUST_CHECK;

/** When the machine was started, seconds since the epoch. */
double prb_machine_boot(void);

#endif

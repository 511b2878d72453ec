/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The plan of a dump: which threads and thread states are to be read. Internal to dump/.
 */
#ifndef PRB_DUMP_PLAN_H
#define PRB_DUMP_PLAN_H

#include "dump/read/reader.h"

/**
 * Walks all interpreters and their thread states, finds the threads that run them, and fills the
 * threads of @p reader and of its dump, whose main_tid it sets. The reader must have its modules,
 * its Pythons and its tasks.
 */
struct prb_error *prb_dump_plan(struct prb_reader *reader) PRB_MUST_CHECK;

#endif

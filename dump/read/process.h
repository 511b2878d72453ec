/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What a dump says of the process as a whole: its program, how it died. Any thread.
 */
#ifndef PRB_DUMP_READ_PROCESS_H
#define PRB_DUMP_READ_PROCESS_H

#include "dump/model/dump.h"
#include "target/target.h"

struct prb_reader;

/** What it died of, as its core tells. Of any target; all 0 if it is neither a core nor the
 * snapshot of one. */
struct prb_dump_death prb_dump_death(struct prb_target *target);

/** Fills what the dump says of the process. */
struct prb_error *prb_read_process(struct prb_reader *r) PRB_MUST_CHECK;

#endif

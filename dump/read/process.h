/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Fills the parts of a dump about the process: its program, its cause of death. Threading:
 * any thread.
 */
#ifndef PRB_DUMP_READ_PROCESS_H
#define PRB_DUMP_READ_PROCESS_H

#include "dump/model/dump.h"
#include "target/target.h"

struct prb_reader;

/**
 * The cause of death according to the core; all 0 if the target is neither a core nor the snapshot
 * of one.
 */
struct prb_dump_death prb_dump_death(struct prb_target *target);

/** Fills the dump's members about the process. */
struct prb_error *prb_read_process(struct prb_reader *r) PRB_MUST_CHECK;

#endif

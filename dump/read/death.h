/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What a process died of, as its core tells. Any thread. */
#ifndef PRB_DUMP_READ_DEATH_H
#define PRB_DUMP_READ_DEATH_H

#include "dump/model/dump.h"
#include "target/target.h"

/** Of any target; all 0 if it is neither a core nor the snapshot of one. */
struct prb_dump_death prb_dump_death(struct prb_target *target);

#endif

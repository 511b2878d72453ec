/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The source text of frames, read as the target sees its files. Internal to injector/.
 */
#ifndef PRB_DUMP_SOURCE_H
#define PRB_DUMP_SOURCE_H

#include "dump/dump.h"

/**
 * Fills `source` of all Python frames whose file can be read; adds a warning for each file that
 * was changed after the process started, since its lines may not be those that run.
 */
struct prb_error *prb_source_fill(struct prb_target *target, struct prb_dump *dump) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Memory that a debugger reads for us. Internal to target/debugger/.
 *
 * Each call of a debugger costs microseconds, or a round trip to another machine: neighbours are
 * read in one call, and what was read is kept.
 */
#ifndef PRB_TARGET_DEBUGGER_MEM_H
#define PRB_TARGET_DEBUGGER_MEM_H

#include "target/debugger/debugger.h"
#include "target/mem/mem.h"

/**
 * Creates it; @p debugger and @p maps, what is mapped as far as that is known yet, are borrowed.
 * Without @p keep everything is read anew each time.
 */
struct prb_error *prb_debugger_mem_create(const struct prb_debugger *debugger,
					  const struct prb_maps *maps, bool keep,
					  struct prb_mem **ret) PRB_MUST_CHECK;

#endif

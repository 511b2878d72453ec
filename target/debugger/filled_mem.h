/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Memory of a debugger's target where the debugger has not got all: a core leaves out what
 * was mapped from a file and cannot have changed. That is read from the file, if it is on this
 * machine and the same build. Internal to target/debugger/.
 */
#ifndef PRB_TARGET_DEBUGGER_FILLED_MEM_H
#define PRB_TARGET_DEBUGGER_FILLED_MEM_H

#include "target/mem/maps.h"
#include "target/mem/mem.h"

/** Opens the file behind a mapping if it is the same build. */
typedef struct prb_error *prb_filled_open(void *context, const struct prb_map *map, int *ret_fd);

/** Creates it over @p base, which it owns from then on; @p maps and @p context are borrowed. */
struct prb_error *prb_filled_mem_create(struct prb_mem *base, const struct prb_maps *maps,
					prb_filled_open *open, void *context,
					struct prb_mem **ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The table memory_usage: rows of the process's memory, written by the program's own calls of
 * probing.event(), span() and step(), and by the agent's thread if `probing.memory.interval` says.
 *
 * Threading: any thread. Errors: a row that cannot be written is left out.
 */
#ifndef PRB_AGENT_RINGS_MEMORY_USAGE_H
#define PRB_AGENT_RINGS_MEMORY_USAGE_H

#include <stdint.h>

#include "agent/inside/export.h"

/**
 * Writes a row now. @p blocks: those of Python's allocator, @p step: the program's; INT64_MIN: not
 * known. 0, or a negative errno value.
 */
PRBA_EXPORT int probing_memory_sample(int64_t blocks, int64_t step);

/** Milliseconds until the agent's thread has to call prba_memory_tick(); -1: never. */
int prba_memory_due(void);

/** Writes a row if it is due. */
void prba_memory_tick(void);

#endif

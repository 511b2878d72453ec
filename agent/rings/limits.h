/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Limits of the disk space of rings: this process's, and those that ended processes have left
 * in the same folder.
 *
 * Threading: while rings are made, by one thread at a time. Errors: negative errno values.
 */
#ifndef PRB_AGENT_RINGS_LIMITS_H
#define PRB_AGENT_RINGS_LIMITS_H

#include <stdint.h>

/** EDQUOT if @p used bytes and @p more are over probing.max_memory. */
int prba_ring_check_memory(uint64_t used, uint64_t more);

/**
 * Removes rings of ended processes from @p base, the folder of all processes' folders: what is
 * older than probing.retention_days, and the oldest beyond probing.max_memory. Only folders of
 * processes that would be seen from here while they live.
 */
void prba_ring_sweep(int base);

/** Identifies this process's pid namespace. */
uint64_t prba_ring_namespace(void);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A process told from others that had its pid before, or get it later: "PID-START", where
 * START is field 22 of /proc/PID/stat, in clock ticks since boot. The folders of rings have such
 * names (docs/ring-format.md), and so have the processes that a gateway serves.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_TARGET_PROC_INSTANCE_H
#define PRB_TARGET_PROC_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { PRB_INSTANCE_SIZE = 32 }; /**< of its text, with the NUL */

/** Writes "PID-START"; the pid alone if @p start_ticks is 0, as of a process that has gone. */
void prb_instance_print(pid_t pid, uint64_t start_ticks, char ret[PRB_INSTANCE_SIZE]);

/** True if @p text is "PID-START". */
bool prb_instance_parse(const char *text, pid_t *pid, uint64_t *start_ticks);

/** The start of @p pid in clock ticks since boot; 0 if there is no such process. */
uint64_t prb_instance_start(pid_t pid);

/** PRB_ERROR_NO_PROCESS unless @p pid is still the process that started then; zombies are. */
struct prb_error *prb_instance_check(pid_t pid, uint64_t start_ticks) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How the child of a jail gives up its rights. Called in the child, once. Internal to base/.
 */
#ifndef PRB_BASE_JAIL_PRIVATE_H
#define PRB_BASE_JAIL_PRIVATE_H

#include <sys/types.h>

#include "base/error.h"

/**
 * Leaves the calling process its memory, @p socket to read and write, and @p file to read (-1:
 * none). All other descriptors are closed where the kernel can do that at once (5.9), and useless
 * elsewhere. Kills it when @p parent ends. On failure some rights may be left: nothing hostile may
 * be touched then.
 */
struct prb_error *prb_jail_confine(pid_t parent, int socket, int file,
				   unsigned cpu_seconds) PRB_MUST_CHECK;

#endif

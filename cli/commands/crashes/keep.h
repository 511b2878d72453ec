/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Copies of the crash records that processes write (docs/crashes.md), for a daemon that
 * outlives their folders.
 *
 * Another user chose all of them: folders and files are opened only if they belong to that user and
 * no other user can write to them, and links are not followed. All users together have one bound,
 * of which each has the same share; what a user does not need of it, the others share.
 */
#ifndef PRB_CLI_COMMANDS_CRASHES_KEEP_H
#define PRB_CLI_COMMANDS_CRASHES_KEEP_H

#include "base/error.h"

/**
 * Copies what is new into crashes/UID of the folder @p state (NULL: the usual one, as of
 * clickhouse/state.h), and keeps the newest, @p most MiB in whole blocks (0: 1024). Records are
 * looked for in /tmp/probing-UID/crashes of all users whose files we may read, and in our own
 * folders. *ret_failed, which is the caller's, is why a record could not be kept; the others were.
 */
struct prb_error *prb_crashes_keep(const char *state, int most,
				   struct prb_error **ret_failed) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Copies of the crash records that processes write (docs/crashes.md), for a daemon that
 * outlives their folders.
 *
 * Another user chose all of them: folders and files are opened only if they belong to that user and
 * nobody else can write to them, links are not followed, and each user has a bound of his own.
 */
#ifndef PRB_CLI_COMMANDS_KEEP_CRASHES_H
#define PRB_CLI_COMMANDS_KEEP_CRASHES_H

#include "base/error.h"

/**
 * Copies what is new into crashes/UID of the folder @p state (NULL: the usual one, as of
 * clickhouse/state.h), and removes the oldest of a user beyond @p most MiB (0: 1024). Records are
 * looked for in /tmp/probing-UID/crashes of all users whom we may read, and in our own folders.
 */
struct prb_error *prb_crashes_keep(const char *state, int most) PRB_MUST_CHECK;

#endif

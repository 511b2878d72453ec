/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Names for a recording's C functions from debuginfod servers.
 *
 * Servers are those of our own environment only, and are asked for build-ids that are hex digits.
 * Their answers are hostile: bounded in size and time, not redirected, held in memory under no
 * name, and used only if they have the build-id that was asked for.
 */
#ifndef PRB_CLI_COMMANDS_PERF_DEBUGINFOD_H
#define PRB_CLI_COMMANDS_PERF_DEBUGINFOD_H

#include "base/error.h"
#include "profile/native/symbolize.h"

/**
 * Asks the servers of @p urls, as $DEBUGINFOD_URLS has them, one after another for each file; says
 * on stderr what it asks for. A server that has no answer is no error.
 */
struct prb_error *prb_debuginfod_symbolize(struct prb_recording *recording, const char *urls,
					   struct prb_symbolized *ret) PRB_MUST_CHECK;

#endif

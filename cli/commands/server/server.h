/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The text and the JSON of `probing server`. Internal to cli/commands/server/. */
#ifndef PRB_CLI_COMMANDS_SERVER_SERVER_H
#define PRB_CLI_COMMANDS_SERVER_SERVER_H

#include "base/str.h"
#include "judge/server/server.h"

void prb_server_text(const struct prb_server_looks *looks, const struct prb_findings *findings,
		     struct prb_str *out);
/** @p pid: of the target. */
void prb_server_json(const struct prb_server_looks *looks, const struct prb_findings *findings,
		     pid_t pid, struct prb_str *out);

#endif

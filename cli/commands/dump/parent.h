/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The target of a dump whose name several processes have: a pool's parent. */
#ifndef PRB_CLI_COMMANDS_DUMP_PARENT_H
#define PRB_CLI_COMMANDS_DUMP_PARENT_H

#include "command/command.h"
#include "target/target.h"

/**
 * Opens the target of @p cli. If several processes match, one of which all others descend from, it
 * is that one, and stderr says how many children have the same name.
 */
struct prb_error *prb_dump_open(const struct prb_cli *cli, struct prb_target **ret) PRB_MUST_CHECK;

#endif

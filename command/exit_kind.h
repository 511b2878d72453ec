/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Exit codes that say which kind of error ended a command, for the gateway, whose requests
 * are answered by commands. The codes that scripts rely on (command/exit.h) are fewer: "failed" is
 * one of them, whether a name does not exist or another debugger has the process.
 *
 * A command uses them if its environment has PRB_EXIT_KINDS, which it does not hand on.
 */
#ifndef PRB_COMMAND_EXIT_KIND_H
#define PRB_COMMAND_EXIT_KIND_H

#include <stdbool.h>

#include "base/error.h"

#define PRB_EXIT_KINDS "PROBING_EXIT_KINDS"

/** Finds out whether exit codes are to be kinds of errors. To be called first, by main(). */
void prb_exit_kinds_begin(void);
bool prb_exit_kinds_are_wanted(void);

/** The exit code for an error. */
int prb_exit_kind(const struct prb_error *err);

/** The kind that an exit code stands for. False if it stands for none. */
bool prb_exit_kind_parse(int exit_code, enum prb_error_code *code, bool *conflict);

#endif

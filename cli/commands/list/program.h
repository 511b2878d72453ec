/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The well-known program that a Python process runs: a Jupyter kernel, a worker of gunicorn.
 *
 * Determined by the command lines of the process and its parent. A forked child has its parent's
 * command line: there the stack of the main thread decides. A process can call itself what it
 * likes, so this is for people to read, never to decide by.
 */
#ifndef PRB_CLI_COMMANDS_LIST_PROGRAM_H
#define PRB_CLI_COMMANDS_LIST_PROGRAM_H

#include "target/proc/process.h"
#include "target/target.h"

/** "gunicorn worker", static; NULL if it is none that is known. @p parent: NULL if it is no Python.
 */
const char *prb_list_program(const struct prb_process *process, const struct prb_process *parent);

/** True if the stack has to be read to know more: prb_list_program_of_stack(). */
bool prb_list_is_fork(const struct prb_process *process, const struct prb_process *parent);

/** As above, of a child that was forked or spawned; NULL also if its stack cannot be read. */
struct prb_error *prb_list_program_of_stack(struct prb_target *target,
					    const char **ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Code that a command evaluates: what it prints is printed as it comes, and Ctrl-C goes to
 * it.
 *
 * prb_interrupt_catch() and prb_interrupt_hold() of command/interrupt.h come before.
 */
#ifndef PRB_CLI_COMMANDS_EVAL_CONSOLE_H
#define PRB_CLI_COMMANDS_EVAL_CONSOLE_H

#include <stdbool.h>

#include "base/error.h"
#include "control/eval.h"

/** Outlives the evaluations that it is used for. */
struct prb_eval_console {
	unsigned patience;  /**< so many Ctrl-C go to the code; the next one leaves it */
	const char *leaver; /**< said to the user when the code gets its last Ctrl-C; or NULL */
	bool said;
};

/** Has @p eval use the console; @p keep: what the code prints is kept, not printed. */
void prb_eval_console_use(struct prb_eval_console *console, bool keep, struct prb_eval *eval);

/** For what else waits with a console as its context: how often Ctrl-C came; -1: too often. */
int prb_eval_console_interruptions(void *console);

/** The flag for the word after --thread, "main", "agent" or NULL; else PRB_ERROR_USAGE. */
struct prb_error *prb_eval_thread(const char *word, uint32_t *ret_flags) PRB_MUST_CHECK;

#endif

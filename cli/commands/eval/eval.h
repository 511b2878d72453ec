/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Runs `probing eval` with a connected agent. */
#ifndef PRB_CLI_COMMANDS_EVAL_EVAL_H
#define PRB_CLI_COMMANDS_EVAL_EVAL_H

#include "control/eval.h"

/**
 * Has @p agent, which it closes, run code, and shows what comes of it; the error is what the exit
 * code says of the code, too.
 */
struct prb_error *prb_eval_show(struct prb_target *t, struct prb_agent *agent,
				const struct prb_eval *how, const char *name,
				const struct prb_str *code, bool json) PRB_MUST_CHECK;

#endif

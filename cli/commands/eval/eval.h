/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Runs `probing eval` with a connected agent. */
#ifndef PRB_CLI_COMMANDS_EVAL_EVAL_H
#define PRB_CLI_COMMANDS_EVAL_EVAL_H

#include "control/eval.h"

/**
 * Runs code by @p agent, closes the agent, and shows the result. The error becomes the exit code,
 * also where the code itself failed.
 */
struct prb_error *prb_eval_show(struct prb_target *t, struct prb_agent *agent,
				const struct prb_eval *how, const char *name,
				const struct prb_str *code, bool json) PRB_MUST_CHECK;

#endif

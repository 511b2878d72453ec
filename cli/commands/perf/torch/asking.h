/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Has the agent measure training steps of torch, and waits for the answer.
 *
 * Threading: one request of a process at a time; Ctrl-C is caught meanwhile.
 */
#ifndef PRB_CLI_COMMANDS_PERF_TORCH_ASKING_H
#define PRB_CLI_COMMANDS_PERF_TORCH_ASKING_H

#include "control/client.h"
#include "control/eval.h"

/**
 * Runs the request @p code: one Ctrl-C ends it, and a second one leaves a process that does not
 * react. On a terminal it says "DOING of PID; Ctrl-C ends it" and @p then. Sets the flag for torch
 * and what Ctrl-C needs in @p how; *ret is the caller's, also after an error.
 */
struct prb_error *prb_torch_ask(struct prb_target *target, struct prb_agent *agent,
				struct prb_eval *how, const struct prb_str *code, const char *doing,
				const char *then, struct prb_eval_result *ret) PRB_MUST_CHECK;

/** Makes what the agent said the reason of an error: "WHAT there: …". */
struct prb_error *prb_torch_refusal(struct prb_str *said, const char *what,
				    const char *hint) PRB_MUST_CHECK;

#endif

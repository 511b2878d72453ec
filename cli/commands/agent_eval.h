/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Having the agent run code: asking, following what the code prints, and what its end means.
 *
 * Ctrl-C goes to the code while it is followed: prb_interrupt_catch() and prb_interrupt_hold() of
 * cli/common/interrupt.h come before.
 */
#ifndef PRB_CLI_COMMANDS_AGENT_EVAL_H
#define PRB_CLI_COMMANDS_AGENT_EVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "control/agent_client.h"
#include "base/error.h"
#include "base/str.h"
#include "target/target.h"

enum { PRB_EVAL_MAX_CODE = PRB_WIRE_MAX_REQUEST - PRB_WIRE_MAX_NAME - PRB_WIRE_EVAL_SIZE };

/** How code is run. */
struct prb_eval {
	uint32_t flags;	    /**< PRB_WIRE_ON_MAIN, … */
	double timeout;	    /**< seconds; 0: only the beginning has to be within some */
	unsigned patience;  /**< so many Ctrl-C go to the code; the next one leaves it */
	bool keep;	    /**< what it prints is collected, not printed */
	const char *leaver; /**< said to the user when the code gets its last Ctrl-C; or NULL */
};

/** What came of an evaluation. */
struct prb_eval_result {
	struct prb_str out, err, value, traceback; /**< if they are kept */
	uint64_t kept;				   /**< bytes of these */
	bool has_value, has_traceback;
	bool refused; /**< the agent did not take the request; that is an error, too */
	enum prb_wire_outcome outcome;
	struct prb_str text; /**< of the agent: what more is to be said */
};
void prb_eval_result_deinit(struct prb_eval_result *result);

/** The flag for the word after --thread, "main", "agent" or NULL; else PRB_ERROR_USAGE. */
struct prb_error *prb_eval_thread(const char *word, uint32_t *ret_flags) PRB_MUST_CHECK;

/**
 * Runs code of which tracebacks say that it is of @p name, and puts what comes of it into
 * @p ret, which was zeroed. An error means that the connection or our output failed, or that the
 * user left: PRB_ERROR_NO_PROCESS says whether the process ended. How the code ended is no error.
 */
struct prb_error *prb_eval_run(struct prb_agent *agent, const struct prb_eval *eval,
			       const char *name, const struct prb_str *code,
			       struct prb_eval_result *ret) PRB_MUST_CHECK;

/**
 * The error that the outcome means, NULL if it ran. One whose message is empty was told already.
 * @p t is looked at for what holds up the code; NULL if it is elsewhere.
 */
struct prb_error *prb_eval_judge(struct prb_target *t, int pid, const struct prb_eval *eval,
				 const struct prb_eval_result *result) PRB_MUST_CHECK;

#endif

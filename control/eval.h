/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Evaluates code through the agent: sends the request, prints the output, and interprets the
 * outcome.
 *
 * Nothing is printed here and no signal is caught: output is handed to the caller, who is asked
 * whether the code shall be interrupted.
 *
 * Threading: one thread at a time for one connection.
 */
#ifndef PRB_CONTROL_EVAL_H
#define PRB_CONTROL_EVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"
#include "control/client.h"
#include "target/target.h"

enum { PRB_EVAL_MAX_CODE = PRB_WIRE_MAX_REQUEST - PRB_WIRE_MAX_NAME - PRB_WIRE_EVAL_SIZE };

/** How code is run, and the callbacks for its output. */
struct prb_eval {
	uint32_t flags; /**< PRB_WIRE_ON_MAIN, … */
	double timeout; /**< seconds; 0: only the beginning has to be within some */
	double lasts;	/**< without a timeout: the code ends by itself after that; 0: unknown */

	/**
	 * Takes a part of what comes: PRB_WIRE_STDOUT, _STDERR, _VALUE or _TRACEBACK. NULL: all is
	 * kept in the result.
	 */
	struct prb_error *(*put)(void *context, enum prb_wire_type what, const void *data,
				 size_t length);
	/**
	 * How often the user has wanted to interrupt the code so far; negative: to leave it. Asked
	 * before each wait, and after a signal or @p look seconds of it. NULL: never.
	 */
	int (*interruptions)(void *context);
	double look; /**< 0: only a signal ends a wait */
	/** Called once if code runs on for a second after its first interruption. Or NULL. */
	void (*goes_on)(void *context, struct prb_target *t, bool on_main);
	void *context;
};

/** The outcome of an evaluation. */
struct prb_eval_result {
	struct prb_str out, err, value, traceback; /**< if they are kept */
	uint64_t kept;				   /**< bytes of these */
	bool has_value, has_traceback;
	bool refused; /**< the agent did not take the request; that is an error, too */
	enum prb_wire_outcome outcome;
	struct prb_str text; /**< of the agent: what more is to be said */
};
void prb_eval_result_deinit(struct prb_eval_result *result);

/**
 * Runs code of which tracebacks say that it is of @p name, and puts what comes of it into
 * @p ret, which was zeroed. An error means that the connection or put() failed, or that the
 * user left (PRB_ERROR_CANCELLED). PRB_ERROR_NO_PROCESS says whether the process ended. How the
 * code ended is no error.
 */
struct prb_error *prb_eval_run(struct prb_agent *agent, const struct prb_eval *eval,
			       const char *name, const struct prb_str *code,
			       struct prb_eval_result *ret) PRB_MUST_CHECK;

/**
 * The error that the outcome means, NULL if it ran. An empty message: a traceback was printed
 * already. @p t is looked at for what holds up the code; NULL if it is elsewhere.
 */
struct prb_error *prb_eval_judge(struct prb_target *t, int pid, const struct prb_eval *eval,
				 const struct prb_eval_result *result) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Connects to the agent of a process, and loads it if necessary. */
#ifndef PRB_CONTROL_LOAD_H
#define PRB_CONTROL_LOAD_H

#include <stdbool.h>

#include "control/client.h"
#include "base/error.h"
#include "target/target.h"
#include "injector/inject.h"

/**
 * The path of the agent's library, for the caller to free: `libprobing-agent.so` beside our program
 * (or libprobing.so, if that is what this code is in), below that in probing/, or in
 * ../lib/probing, the file that $PROBING_AGENT names, or the one embedded in the static program.
 */
struct prb_error *prb_agent_library(char **ret) PRB_MUST_CHECK;

/**
 * Loads the agent into the Python process @p t and starts it. *ret is what the injection took.
 * PRB_ERROR_UNSUPPORTED if there is no Python that runs.
 */
struct prb_error *prb_agent_load(struct prb_target *t,
				 struct prb_inject_result *ret) PRB_MUST_CHECK;

/** The error for a result of probing_agent_start(), or NULL. */
struct prb_error *prb_agent_started(const struct prb_target *t, int64_t value) PRB_MUST_CHECK;

/**
 * Unmaps the library of an agent that was stopped. result->absent: there is none of this build;
 * else *why explains why it stays (static), NULL if it was unmapped.
 */
struct prb_error *prb_agent_unload(struct prb_target *t, struct prb_inject_result *ret,
				   const char **why) PRB_MUST_CHECK;

/**
 * Connects to the agent; loads it first if there is none and @p may_load. Refuses a process in
 * which code could not take the GIL without harm (forked.h).
 */
struct prb_error *prb_agent_reach(struct prb_target *t, bool may_load,
				  struct prb_agent **ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finds the thread that keeps an evaluation waiting, by reading the target from outside. A
 * NULL target is remote: nothing is read.
 */
#ifndef PRB_CONTROL_WHO_BLOCKS_H
#define PRB_CONTROL_WHO_BLOCKS_H

#include <stdbool.h>

#include "base/error.h"
#include "target/target.h"
#include "base/str.h"

/**
 * The switch interval of the main interpreter in seconds, if the program has set one that is longer
 * than Python's own of 5 ms; else 0, also if it is unknown.
 */
double prb_agent_long_switch_interval(struct prb_target *t);

/**
 * The error for a GIL that was not free for @p seconds: which thread holds it, and where, and the
 * switch interval if it is a long one; @p so: what that means for the caller.
 */
struct prb_error *prb_agent_blame_gil(struct prb_target *t, int pid, double seconds,
				      const char *so) PRB_MUST_CHECK;

/**
 * The error for an agent whose thread waits, after @p seconds, for a thread of the program that
 * imports a module; NULL if it does not. @p so: as above.
 */
struct prb_error *prb_agent_blame_import(struct prb_target *t, double seconds,
					 const char *so) PRB_MUST_CHECK;

/**
 * The error for a main thread that executed no Python code for @p seconds: what it does. It was
 * waited for because the user @p asked_for it, or because it alone can make the GIL.
 */
struct prb_error *prb_agent_blame_main(struct prb_target *t, double seconds,
				       bool asked_for) PRB_MUST_CHECK;

/**
 * Appends where the interrupted code is: ", and is asleep in <module> at …"; nothing if the thread
 * that runs it is unknown.
 */
void prb_agent_blame_code(struct prb_target *t, bool on_main, struct prb_str *ret);

/** The error for a thread of a paused process that made no step to a line in @p seconds; @p why:
 * as the agent says, or "". */
struct prb_error *prb_agent_blame_line(struct prb_target *t, pid_t tid, double seconds,
				       const char *why) PRB_MUST_CHECK;

#endif

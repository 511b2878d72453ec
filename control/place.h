/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Where evaluated code runs: in a frame of a paused process, or on its event loop. */
#ifndef PRB_CONTROL_PLACE_H
#define PRB_CONTROL_PLACE_H

#include "base/error.h"
#include "base/str.h"
#include "control/client.h"
#include "target/target.h"

/** The number that the option --frame has; 0 without it (NULL). */
struct prb_error *prb_frame_number(const char *text, unsigned *ret) PRB_MUST_CHECK;

/**
 * Puts in front of @p code the line that names Python frame @p depth of thread @p tid (0: the main
 * one) to the agent, and the flag into @p flags. PRB_ERROR_UNSUPPORTED if the process is not paused
 * by its agent: its frames go on running.
 */
struct prb_error *prb_eval_in_frame(struct prb_target *t, pid_t tid, unsigned depth,
				    struct prb_str *code, uint32_t *flags) PRB_MUST_CHECK;

/** The same for a process that the caller itself has paused. */
struct prb_error *prb_eval_name_frame(struct prb_target *t, pid_t tid, unsigned depth,
				      struct prb_str *code, uint32_t *flags) PRB_MUST_CHECK;

/** The flag of code for the event loop. PRB_ERROR_UNSUPPORTED if the process is paused. */
struct prb_error *prb_eval_on_loop(struct prb_target *t, uint32_t *flags) PRB_MUST_CHECK;

/** Refuses, and closes, an agent that is too old for what @p flags ask for. */
struct prb_error *prb_eval_check_place(struct prb_agent **agent, uint32_t flags) PRB_MUST_CHECK;

#endif

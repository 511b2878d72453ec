/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A pause of a process by its agent, from our side: the request, what the agent says of it,
 * and its end. The connection is what holds the process: it runs on when that is closed, or we end.
 *
 * Threading: one thread at a time. With `freezes`, the caller answers PRB_WIRE_FREEZE and
 * PRB_WIRE_THAW itself (control/freeze.h), and stays on one thread.
 */
#ifndef PRB_CONTROL_PAUSE_H
#define PRB_CONTROL_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/protocol.h"
#include "base/error.h"
#include "base/str.h"
#include "control/client.h"
#include "control/pause_state.h"
#include "target/target.h"

struct prb_pause {
	struct prb_target *target; /**< borrowed */
	struct prb_agent *agent;   /**< NULL: it was not asked */
	double within, max;	   /**< seconds: to begin, and to last at most */
	double spent;		   /**< seconds of those to begin that are over when it is asked */
	double asked, paused;	   /**< when, by prb_clock_seconds(); 0: not yet */
	int64_t held_us;	   /**< -1: not known */
	bool over;
	enum prb_wire_outcome how; /**< once it is over */
	struct prb_str text;	   /**< the agent's words about that */
};

/** Sets what 0 stands for: 2 s to begin, 10 minutes at most. */
void prb_pause_init(struct prb_pause *pause, struct prb_target *t, double within, double max);
void prb_pause_deinit(struct prb_pause *pause);

/** Asks the agent, which is loaded if it is not there, for a pause. */
struct prb_error *prb_pause_ask(struct prb_pause *pause, bool freezes) PRB_MUST_CHECK;

/** Notes what a frame of the agent says; an error if the request was refused. */
struct prb_error *prb_pause_take(struct prb_pause *pause,
				 const struct prb_wire_frame *frame) PRB_MUST_CHECK;

/** Asks the agent to end it; prb_pause_take() receives the answer. */
struct prb_error *prb_pause_end(struct prb_pause *pause) PRB_MUST_CHECK;

/** Called several times a second: an error ends the waiting. */
typedef struct prb_error *prb_pause_check(void *context);

/** Waits until the process is paused, or the pause is over. Without `freezes` only. */
struct prb_error *prb_pause_await_begin(struct prb_pause *pause, prb_pause_check *check,
					void *context) PRB_MUST_CHECK;
/** As above, until the pause is over. */
struct prb_error *prb_pause_await_end(struct prb_pause *pause, prb_pause_check *check,
				      void *context) PRB_MUST_CHECK;

/** The error of a pause that was over before it began. */
struct prb_error *prb_pause_explain(struct prb_pause *pause) PRB_MUST_CHECK;

/** The error of a request for a process that @p state says is paused. */
struct prb_error *prb_pause_already(const struct prb_target *t,
				    const struct prb_pause_state *state) PRB_MUST_CHECK;

#endif

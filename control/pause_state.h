/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Detects whether `debug --pause` holds a process, and which command does.
 *
 * Reads the memory of the process and /proc, and sends no request: it works while the agent is busy
 * or stopped, and never waits. A pause by the agent is what the agent says of itself.
 *
 * Threading: any thread.
 */
#ifndef PRB_CONTROL_PAUSE_STATE_H
#define PRB_CONTROL_PAUSE_STATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "target/target.h"

/** The address and port of the remote client that a command runs for. */
#define PRB_PAUSE_CLIENT "PROBING_CLIENT"

struct prb_pause_state {
	bool paused;
	bool hard;     /**< by ptrace */
	pid_t pid;     /**< of the command that pauses; 0: the target cannot see it */
	bool foreign;  /**< `pid` belongs to another pid namespace */
	double since;  /**< seconds since the epoch; 0: unknown */
	char from[64]; /**< where that command's user is: an address, or "" */
};

/** Looks at the live process @p t; what cannot be read counts as not paused. */
void prb_pause_state_find(struct prb_target *t, struct prb_pause_state *ret);

/** As above, for a pause by ptrace alone, which needs no memory of the process. */
void prb_pause_state_find_hard(struct prb_target *t, struct prb_pause_state *ret);

/** Appends "by process 4711 (from 10.0.0.5) since 14:03:22". */
void prb_pause_state_put(const struct prb_pause_state *state, struct prb_str *ret);

/** Appends "paused by process … since …; 'probing 4242 resume' ends that"; nothing if it is not. */
void prb_pause_state_tell(const struct prb_pause_state *state, pid_t pid, struct prb_str *ret);

/**
 * The error of a command that cannot do its work in @p t, taken over (NULL: there is none), or a
 * better one if a pause by ptrace is the reason.
 */
struct prb_error *prb_pause_state_blame(struct prb_target *t, struct prb_error *err) PRB_MUST_CHECK;

/** Puts the member "paused": an object, or null. */
void prb_pause_state_json(const struct prb_pause_state *state, struct prb_json *json);

#endif

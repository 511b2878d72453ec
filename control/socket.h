/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Finds the socket of a process's agent, if there is one. */
#ifndef PRB_CONTROL_SOCKET_H
#define PRB_CONTROL_SOCKET_H

#include "base/error.h"
#include "base/str.h"
#include "target/target.h"

/**
 * A socket connected to the agent of @p t, proven to be that process's by the kernel, for the
 * caller to close. PRB_ERROR_NOT_FOUND if it has none, PRB_ERROR_PERMISSION if we may not.
 */
struct prb_error *prb_agent_socket(struct prb_target *t, int *ret_fd) PRB_MUST_CHECK;

/**
 * Removes stale sockets of killed processes of the user of @p t from the folders in which an agent
 * of @p t listens; called whenever an agent was loaded or ejected.
 */
void prb_agent_tidy(struct prb_target *t);

/**
 * True if the agent's library is among the maps of @p t, under one of the names that it is loaded
 * by; a renamed one is only found by loading it.
 */
bool prb_agent_is_mapped(const struct prb_target *t);

/** True for the code of that library: as a file, as it was given in memory, or as a removed copy.
 */
bool prb_agent_is_library(const struct prb_map *map);

/** The state of an agent as seen from outside, without talking to it. */
enum prb_agent_state {
	PRB_AGENT_NONE,
	PRB_AGENT_STOPPED, /**< its library is mapped, and no socket of it listens */
	PRB_AGENT_RUNNING,
};

/** Looks at one process after the other; starts as {}. */
struct prb_agent_seeker {
	struct prb_str network; /**< which one `sockets` are of */
	struct prb_str sockets;
};
void prb_agent_seeker_deinit(struct prb_agent_seeker *seeker);

/** The state of the agent in @p t; none where nothing can be seen. */
enum prb_agent_state prb_agent_seek(struct prb_agent_seeker *seeker, struct prb_target *t);

#endif

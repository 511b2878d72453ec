/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The agent's library that the program of `make static` has in it, as a file that a process
 * can load: ~/.cache/probing/agent-SUM/libprobing-agent.so, or below /var/cache for root, where
 * other users' processes can read it.
 *
 * Threading: any thread; processes may do it at once. Ownership: the path is the caller's.
 */
#ifndef PRB_CONTROL_EMBEDDED_H
#define PRB_CONTROL_EMBEDDED_H

#include "base/error.h"

/** *ret is NULL if this program has none. */
struct prb_error *prb_agent_embedded(const char *name, char **ret) PRB_MUST_CHECK;

#endif

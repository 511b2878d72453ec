/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Has the thread that has the GIL give it away, as one that has waited for its switch
 * interval does.
 *
 * Threading: the server's thread, which holds the GIL's mutex, but for what says otherwise.
 */
#ifndef PRB_AGENT_GIL_REQUEST_H
#define PRB_AGENT_GIL_REQUEST_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/protocol.h"

/**
 * Whether thread @p worker sleeps in the condition variable of glibc that @p hold names, with or
 * without its mutex.
 */
bool prba_gil_is_waited_for(const struct prb_wire_hold *hold, pid_t worker);

/**
 * Asks for it, if that is known to be safe; @p worker: our thread that waits for the GIL. False if
 * nobody was asked.
 */
bool prba_gil_request(const struct prb_wire_hold *hold, pid_t worker);

/**
 * Before the mutex is given back: what was asked for is taken back, unless @p gives_way: who has
 * the GIL was seen to wait for the mutex.
 */
void prba_gil_request_end(bool gives_way);

/**
 * For the thread of ours that has the GIL, and holds its mutex: takes back what others have asked
 * for. False if it is not known where that is. @p looks: the interpreter still looks for it each
 * time that it looks for anything, until it finds out anew (prba_bootstrap_startle()).
 */
bool prba_gil_take_back(const struct prb_wire_hold *hold, bool *looks);

/** In a child after fork(), whose thread forgets what was asked of it when it takes its new GIL. */
void prba_gil_request_forget(void);

#endif

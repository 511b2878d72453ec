/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The exports of libprobing-agent.so. Both are called by the injector, on a thread of its
 * own, which has opened the library (dlopen) for itself and closes it again after the call. The
 * agent opens its library once more as long as it may be needed.
 */
#ifndef PRB_AGENT_SOCKET_AGENT_H
#define PRB_AGENT_SOCKET_AGENT_H

#include <stdint.h>

#include "agent/inside/export.h"

/**
 * Starts the agent's thread and returns at once. @p config is "" or "folder=PATH", where the socket
 * is put. 0: it was started; 1: it runs already; else -errno: EINVAL for the config, ENOSYS for a C
 * library without threads, EBUSY while an earlier one is stopping, ELIBACC if the library cannot be
 * kept open, or why there is no socket. A running agent that clients cannot find, since its file
 * was removed or its process has become another user's, opens a new socket.
 */
PRBA_EXPORT intptr_t probing_agent_start(const char *config);

/**
 * Stops it and waits until its threads have ended and its files are gone. With @p how "unload" it
 * gives the library's handle, for the caller to close with dlclose(), if none of its code can be
 * needed any more; 0 if it does not hold the library open; else enum prb_agent_stays. Otherwise 0.
 */
PRBA_EXPORT intptr_t probing_agent_stop(const char *how);

/**
 * For os.register_at_fork(), which runs both in the thread that forks: the agent's thread ends
 * before, if it is the only other one, so that Python does not warn of threads; it starts again
 * when the frame that forks, an object whose address is in @p frame, next looks for pending calls.
 */
PRBA_EXPORT intptr_t probing_agent_park(void);
PRBA_EXPORT intptr_t probing_agent_unpark(const char *frame);

/**
 * Has the process write a crash record when it dies: see agent/crash/crash.h for @p config. 0 or
 * -errno: EINVAL for the config, EACCES or EPERM if there is no folder that is the user's alone.
 */
PRBA_EXPORT intptr_t probing_agent_crash(const char *config);

#endif

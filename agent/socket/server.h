/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The agent's thread that talks to clients. It never touches Python, so that it answers
 * whatever the interpreter does; idle, it sleeps without a timeout.
 */
#ifndef PRB_AGENT_SOCKET_SERVER_H
#define PRB_AGENT_SOCKET_SERVER_H

#include <stdbool.h>

enum prba_started { PRBA_STARTED = 0, PRBA_RUNS_ALREADY = 1 };

/** Starts the thread; enum prba_started, or -errno. */
int prba_server_start(const char *folder);

/**
 * Has the thread stop, and waits for it. False if objects of the interpreter whose code is ours are
 * in use still.
 */
bool prba_server_stop(void);

/**
 * Ends the thread for the time of a fork, if it is the only one besides the caller's and no client
 * is there; clients that come meanwhile wait. True if it did: prba_server_unpark() starts it again.
 */
bool prba_server_park(void);
void prba_server_unpark(void);

/** The process ends: removes the file, and nothing else. */
void prba_server_unlink(void);

/** In a child after fork(): there is no agent, and no socket of it. */
void prba_server_forked(void);

#endif

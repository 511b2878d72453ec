/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The server's list of client connections.
 *
 * Threading: all of it is called by the server's thread, but for prba_clients_forked().
 */
#ifndef PRB_AGENT_SOCKET_CLIENTS_H
#define PRB_AGENT_SOCKET_CLIENTS_H

#include <stdbool.h>

struct prba_connection;

enum { PRBA_CLIENTS = 16 };

struct prba_clients {
	struct prba_connection *list[PRBA_CLIENTS]; /**< owned; NULL: free */
};

/** Takes a connection over; false, and it stays the caller's, if there are too many. */
bool prba_clients_add(struct prba_clients *clients, struct prba_connection *c);

/**
 * True if there is no place for another client, but the code of a client that has left is about to
 * end.
 */
bool prba_clients_expect_room(const struct prba_clients *clients);

/** How many there are that have not left, and for how many code runs. */
void prba_clients_count(const struct prba_clients *clients, unsigned *present, unsigned *busy);

/**
 * Interrupts the code of clients that have left, or all code if the agent is @p stopping; checks
 * deadlines and forgets clients that have left. Gives the milliseconds until it has to be called
 * again, -1 for never.
 */
int prba_clients_look_after(struct prba_clients *clients, bool stopping);

/** True if nothing runs for any of them. */
bool prba_clients_are_over(const struct prba_clients *clients);

/** Ends the connections, for which nothing runs any more. */
void prba_clients_end(struct prba_clients *clients);

/** In a child after fork(): closes its copies of their descriptors, and nothing else. */
void prba_clients_forked(struct prba_clients *clients);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The content of torch's flight recorder as JSON, from C++ functions that c10d exports.
 *
 * They need no GIL, so they work while the process hangs and a thread holds it. The recorder has a
 * mutex. If a thread never releases it, our worker never returns, and the client gets an error at
 * its deadline.
 *
 * Threading: the worker of the connection, without the GIL. Errors: an exception of C++ ends the
 * call and is reported; it never reaches the program.
 */
#ifndef PRB_AGENT_TORCH_FLIGHT_H
#define PRB_AGENT_TORCH_FLIGHT_H

#include <stdbool.h>

struct prba_connection;

/** True if the job asks for it: PRB_WIRE_TORCH with the text "flight". */
bool prba_flight_is_asked(const struct prba_connection *c);

/** Does the job: sends a line of JSON for each recorder that is there, and finishes it. */
void prba_flight_do(struct prba_connection *c);

/** What torch's libraries export by that name, or NULL. The caller holds the GIL. */
void *prba_torch_symbol(const char *name);

#endif

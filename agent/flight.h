/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What torch's flight recorder has, as JSON, by c10d's exported functions of C++.
 *
 * They need no GIL, so that a process can be asked that hangs while a thread holds it. The recorder
 * has a mutex: if a thread keeps that, our worker waits for it for ever, and the client is told so
 * at its deadline.
 *
 * Threading: the worker of the connection, without the GIL. Errors: an exception of C++ ends the
 * call and is reported; it never reaches the program.
 */
#ifndef PRB_AGENT_FLIGHT_H
#define PRB_AGENT_FLIGHT_H

#include <stdbool.h>

struct prba_connection;

/** True if the job asks for it: PRB_WIRE_TORCH with the text "flight". */
bool prba_flight_is_asked(const struct prba_connection *c);

/** Does the job: sends a line of JSON for each recorder that is there, and finishes it. */
void prba_flight_do(struct prba_connection *c);

#endif

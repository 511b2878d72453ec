/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Client of the agent in a process: connects, sends and receives frames.
 *
 * Threading: one thread at a time for one connection. The agent's frames are as untrusted as the
 * memory of its process: every length is checked.
 */
#ifndef PRB_CONTROL_CLIENT_H
#define PRB_CONTROL_CLIENT_H

#include <stdint.h>

#include "agent/protocol.h"
#include "base/error.h"
#include "target/target.h"

struct prb_agent;

/**
 * Connects to the agent of the live process @p t, which is borrowed, and exchanges hellos.
 * PRB_ERROR_NOT_FOUND if it has none; PRB_ERROR_PERMISSION if we may not; PRB_ERROR_TIMEOUT if it
 * does not answer. An agent of another version is logged at level 0, once for a process.
 */
struct prb_error *prb_agent_connect(struct prb_target *t, struct prb_agent **ret) PRB_MUST_CHECK;

/**
 * Exchanges hellos with an agent at the other end of @p fd, which it owns: a proxy passes the
 * frames on. Its process is elsewhere. PRB_ERROR_NO_PROCESS if the connection ends.
 */
struct prb_error *prb_agent_attach(int fd, struct prb_agent **ret) PRB_MUST_CHECK;

/** Ends the connection; code that it evaluates is interrupted. NULL is allowed. */
void prb_agent_close(struct prb_agent *agent);

/** Its process; NULL if that is elsewhere. */
struct prb_target *prb_agent_target(const struct prb_agent *agent);

/** The agent's hello; valid as long as the connection. */
const struct prb_wire_hello *prb_agent_hello(const struct prb_agent *agent);

/**
 * PRB_ERROR_UNSUPPORTED if the agent lacks one of @p capabilities (PRB_WIRE_CAN_…): it is of an
 * earlier version, or has no Python. @p what completes "it cannot".
 */
struct prb_error *prb_agent_requires(const struct prb_agent *agent, uint32_t capabilities,
				     const char *what) PRB_MUST_CHECK;

/** The time on our clock in @p seconds from now: a deadline for several frames. */
double prb_agent_deadline(double seconds);
/** The seconds until such a time; 0 if it is over. */
double prb_agent_left(double deadline);

/**
 * As prb_agent_send(), and limits the whole exchange: the answer has to come within @p seconds
 * (negative: no limit), whatever comes before it, or nothing. After that, or two seconds later if
 * something came, prb_agent_receive() returns PRB_ERROR_TIMEOUT, and prb_agent_never_answers()
 * distinguishes an agent that sent other frames from a silent one.
 */
struct prb_error *prb_agent_request(struct prb_agent *agent, double seconds,
				    enum prb_wire_type type, const void *head, size_t head_length,
				    const void *body, size_t body_length) PRB_MUST_CHECK;
/** Sets that limit anew, from now on, for the next part of an exchange. */
void prb_agent_limit(struct prb_agent *agent, double seconds);
/** How long the answer may still take by that limit; negative: it has none. */
double prb_agent_patience(const struct prb_agent *agent);
bool prb_agent_never_answers(const struct prb_agent *agent);

/**
 * Sends a frame: @p head, then @p body. PRB_ERROR_TIMEOUT if the agent of
 * a process here does not take it, PRB_ERROR_CANCELLED as for prb_agent_receive().
 */
struct prb_error *prb_agent_send(struct prb_agent *agent, enum prb_wire_type type, const void *head,
				 size_t head_length, const void *body,
				 size_t body_length) PRB_MUST_CHECK;

/** The number of the last request; frames of an earlier one that was given up may still come. */
uint16_t prb_agent_last_request(const struct prb_agent *agent);

/**
 * Waits for the next frame, whose payload is valid until the next call. @p seconds: at most; < 0:
 * for as long as the exchange may take. PRB_ERROR_CANCELLED if a signal came in between,
 * PRB_ERROR_TIMEOUT, PRB_ERROR_NO_PROCESS if the connection ended.
 */
struct prb_error *prb_agent_receive(struct prb_agent *agent, double seconds,
				    struct prb_wire_frame *ret) PRB_MUST_CHECK;

/** True if something follows the last frame: the next one, a part of it, or the end. */
bool prb_agent_has_more(const struct prb_agent *agent);

/**
 * As prb_agent_receive(), but an agent that is late is waited for: one whose threads run, or wait
 * for a processor. PRB_ERROR_TIMEOUT, after @p seconds and some, says why it does not answer.
 */
struct prb_error *prb_agent_await(struct prb_agent *agent, double seconds,
				  struct prb_wire_frame *ret) PRB_MUST_CHECK;

/**
 * Asks for something that is answered by one frame of type @p reply within @p seconds, however many
 * others come. A refusal by the agent is PRB_ERROR_FAILED.
 */
struct prb_error *prb_agent_ask(struct prb_agent *agent, enum prb_wire_type request,
				enum prb_wire_type reply, double seconds,
				struct prb_wire_frame *ret) PRB_MUST_CHECK;

/** Has the agent stop and waits until its code has ended. */
struct prb_error *prb_agent_stop(struct prb_agent *agent) PRB_MUST_CHECK;

/**
 * The PRB_ERROR_NO_PROCESS of a connection that ended, taken over, or a better one if the process
 * ended with it.
 */
struct prb_error *prb_agent_explain_end(const struct prb_agent *agent,
					struct prb_error *err) PRB_MUST_CHECK;

/** Our end of the connection, for poll(): while nothing was asked, it is readable at its end. */
int prb_agent_descriptor(const struct prb_agent *agent);

#endif

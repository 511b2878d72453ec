/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A client's connection to a server (remote/serve/serve.h): sends and receives frames of
 * remote/wire.h.
 *
 * Nothing blocks but prb_link_open(); wait in poll(), for `fd`.
 */
#ifndef PRB_REMOTE_LINK_H
#define PRB_REMOTE_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "remote/wire.h"
#include "base/error.h"
#include "base/str.h"

struct prb_link {
	const char *target; /**< borrowed */
	int fd;
	struct prb_str in, out;
	size_t taken;  /**< of `in`, by the last frame */
	size_t window; /**< bytes of stdin that may be sent */
};

/**
 * Connects to @p target, "host:port"; both sides have proven to know the token then. To be closed
 * whether that went well or not.
 */
struct prb_error *prb_link_open(struct prb_link *link, const char *target,
				const char *token_file) PRB_MUST_CHECK;
void prb_link_close(struct prb_link *link);
#define prb_auto_link __attribute__((cleanup(prb_link_close)))

/** Queues a frame. */
void prb_link_put(struct prb_link *link, enum prb_remote_type type, const void *payload,
		  size_t length);

/** Sends what is queued, as far as it is taken. */
struct prb_error *prb_link_send(struct prb_link *link) PRB_MUST_CHECK;

/** Receives all available bytes; at the end of the connection, prb_link_ended(). */
struct prb_error *prb_link_receive(struct prb_link *link) PRB_MUST_CHECK;

/** The next frame if it is there whole, in *whole. It is valid until the next call. */
struct prb_error *prb_link_next(struct prb_link *link, struct prb_wire_frame *frame,
				bool *whole) PRB_MUST_CHECK;

/** The error in a frame of the server: its exit code, a message, a line feed and a hint. */
struct prb_error *prb_link_told(const struct prb_link *link,
				const struct prb_wire_frame *frame) PRB_MUST_CHECK;

/** The error for a server that is gone. */
struct prb_error *prb_link_ended(const struct prb_link *link) PRB_MUST_CHECK;

#endif

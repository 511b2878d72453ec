/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The network protocol between the server of a process and its clients.
 *
 * Frames are as in the agent's protocol (agent/protocol.h): eight bytes and a payload, numbers
 * little-endian. The client says hello with a number of its own that is used once (a nonce), the
 * server answers with one of its own, each proves that it knows the token by an HMAC over both, and
 * then the client may have one command run after the other. docs/protocol.md has the handshake.
 *
 * Everything here only looks at bytes: nothing is allocated, and every length is checked.
 */
#ifndef PRB_REMOTE_WIRE_H
#define PRB_REMOTE_WIRE_H

#include <stdbool.h>

#include "agent/protocol.h"

enum {
	PRB_REMOTE_VERSION = 1,
	PRB_REMOTE_NONCE_SIZE = 32,
	PRB_REMOTE_PROOF_SIZE = 32,
	PRB_REMOTE_HELLO_SIZE = 8 + PRB_REMOTE_NONCE_SIZE, /**< of either side */
	PRB_REMOTE_WELCOME_SIZE = PRB_REMOTE_PROOF_SIZE + 4,
	PRB_REMOTE_RUN_SIZE = 16,	/**< fixed part of a run frame */
	PRB_REMOTE_DONE_SIZE = 8,	/**< payload of a done frame */
	PRB_REMOTE_MAX_STRANGER = 1024, /**< payload of a client that has proven nothing */
	PRB_REMOTE_MAX_REQUEST = 1 << 20,
	PRB_REMOTE_MAX_REPLY = PRB_WIRE_MAX_REPLY,
	PRB_REMOTE_MAX_WORDS = 256,
	PRB_REMOTE_WINDOW = 256 << 10, /**< stdin that may be sent before the command takes any */
};

/** Begins the payload of both hellos. */
#define PRB_REMOTE_MAGIC "PRBR"

enum prb_remote_type {
	/* the client's */
	PRB_REMOTE_HELLO = 1,
	PRB_REMOTE_INTERRUPT = 3, /**< SIGINT for the command that runs */
	PRB_REMOTE_PROOF = 16,
	PRB_REMOTE_RUN = 17,
	PRB_REMOTE_STDIN = 18, /**< bytes for the command; none: there are no more */

	/* the server's */
	PRB_REMOTE_HELLO_REPLY = 64,
	PRB_REMOTE_STDOUT = 65,
	PRB_REMOTE_STDERR = 66,
	PRB_REMOTE_DONE = 69,  /**< the command has ended: exit code, or the signal that ended it */
	PRB_REMOTE_ERROR = 72, /**< the exit code for it, a message, a line feed and a hint */
	PRB_REMOTE_WELCOME = 80, /**< the server's proof, then the pid it serves */
	PRB_REMOTE_TAKEN = 81,	 /**< so many more bytes of stdin (4) may be sent */
};

/** Flags of run. */
enum {
	PRB_REMOTE_INPUT = 1,	  /**< stdin frames follow; else the command's stdin is empty */
	PRB_REMOTE_TERMINAL = 2,  /**< the client's stdout is a terminal of that size */
	PRB_REMOTE_COLOUR = 4,	  /**< which shows colours */
	PRB_REMOTE_TERMINALS = 8, /**< and so is its stderr */
};

struct prb_remote_hello {
	uint16_t lowest, highest;
	uint8_t nonce[PRB_REMOTE_NONCE_SIZE];
};

/** The command to run; its words are borrowed from the frame and each ended by a NUL. */
struct prb_remote_run {
	uint32_t flags, columns, rows;
	size_t count;
	const char *words[PRB_REMOTE_MAX_WORDS + 1]; /**< ends with NULL */
};

/** Writes the payload of a hello; the server's has the version it chose as both. */
static inline void prb_remote_put_hello(uint8_t at[PRB_REMOTE_HELLO_SIZE],
					const struct prb_remote_hello *hello)
{
	memcpy(at, PRB_REMOTE_MAGIC, 4);
	prb_wire_put16(at + 4, hello->lowest);
	prb_wire_put16(at + 6, hello->highest);
	memcpy(at + 8, hello->nonce, PRB_REMOTE_NONCE_SIZE);
}

/** True if the frame is a hello of type @p type. */
static inline bool prb_remote_get_hello(const struct prb_wire_frame *frame,
					enum prb_remote_type type, struct prb_remote_hello *ret)
{
	if (frame->type != type || frame->length < PRB_REMOTE_HELLO_SIZE ||
	    memcmp(frame->payload, PRB_REMOTE_MAGIC, 4) != 0)
		return false;
	ret->lowest = prb_wire_get16(frame->payload + 4);
	ret->highest = prb_wire_get16(frame->payload + 6);
	memcpy(ret->nonce, frame->payload + 8, PRB_REMOTE_NONCE_SIZE);
	return true;
}

/** Writes the fixed part of a run frame; the words follow, each with its NUL. */
static inline void prb_remote_put_run(uint8_t at[PRB_REMOTE_RUN_SIZE],
				      const struct prb_remote_run *run)
{
	prb_wire_put32(at, run->flags);
	prb_wire_put32(at + 4, run->columns);
	prb_wire_put32(at + 8, run->rows);
	prb_wire_put32(at + 12, (uint32_t)run->count);
}

/** True if the frame asks for a command, with as many words as it says and nothing else. */
static inline bool prb_remote_get_run(const struct prb_wire_frame *frame,
				      struct prb_remote_run *ret)
{
	const char *at = (const char *)frame->payload + PRB_REMOTE_RUN_SIZE;
	const char *end = (const char *)frame->payload + frame->length;

	if (frame->type != PRB_REMOTE_RUN || frame->length < PRB_REMOTE_RUN_SIZE)
		return false;
	ret->flags = prb_wire_get32(frame->payload);
	ret->columns = prb_wire_get32(frame->payload + 4);
	ret->rows = prb_wire_get32(frame->payload + 8);
	ret->count = prb_wire_get32(frame->payload + 12);
	if (!ret->count || ret->count > PRB_REMOTE_MAX_WORDS)
		return false;
	for (size_t i = 0; i < ret->count; i++) {
		const char *nul = (const char *)memchr(at, 0, (size_t)(end - at));

		if (!nul)
			return false;
		ret->words[i] = at;
		at = nul + 1;
	}
	ret->words[ret->count] = NULL;
	return at == end;
}

#endif

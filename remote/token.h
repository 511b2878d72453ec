/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The token of a served process, and the proof that a client knows it.
 */
#ifndef PRB_REMOTE_TOKEN_H
#define PRB_REMOTE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "remote/wire.h"
#include "base/error.h"

enum { PRB_TOKEN_MIN = 16, PRB_TOKEN_MAX = 256 };

struct prb_token {
	char text[PRB_TOKEN_MAX + 1]; /**< printable, no spaces */
	bool known;		      /**< the user knows it: it is not to be printed */
};

/**
 * The token of a server: what $PROBING_AUTH_TOKEN says; else what is in @p file, which is made, for
 * its user alone, if there is none; else, or with NULL, a fresh one.
 */
struct prb_error *prb_token_choose(const char *file, struct prb_token *ret) PRB_MUST_CHECK;

/** The token of a client: of @p file if that is not NULL, else of $PROBING_AUTH_TOKEN. */
struct prb_error *prb_token_find(const char *file, struct prb_token *ret) PRB_MUST_CHECK;

/** Fills @p nonce with unpredictable bytes. */
struct prb_error *prb_token_nonce(uint8_t nonce[PRB_REMOTE_NONCE_SIZE]) PRB_MUST_CHECK;

/** PRB_TOKEN_COOKIE: a browser, whose nonces are names (gateway/access.c). */
enum prb_token_side { PRB_TOKEN_CLIENT, PRB_TOKEN_SERVER, PRB_TOKEN_COOKIE };

/** That side's proof of the token: an HMAC over both nonces. */
void prb_token_prove(const struct prb_token *token, enum prb_token_side side,
		     const uint8_t client[PRB_REMOTE_NONCE_SIZE],
		     const uint8_t server[PRB_REMOTE_NONCE_SIZE],
		     uint8_t ret[PRB_REMOTE_PROOF_SIZE]);

/** True if two proofs are the same; takes as long whether they are or not. */
bool prb_token_equal(const uint8_t one[PRB_REMOTE_PROOF_SIZE],
		     const uint8_t other[PRB_REMOTE_PROOF_SIZE]);

#endif

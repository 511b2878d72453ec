/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Decides which HTTP requests a gateway answers.
 *
 * A request has to name one of the gateway's own hosts (else a foreign name may have been made to
 * lead here), come from no page but ours, and carry the token: in `Authorization: Bearer`, in
 * `?token=`, or once that was right in a cookie. The cookie is of use only to the local user, or
 * the address, that it was given to: other programs that listen on this machine see it too, because
 * a browser sends cookies to all ports of a host. It is made of the token, so that a page goes on
 * when a gateway with the same token is restarted; another token ends it. Guessing the token from
 * it is as hard as from a connection of `probing -t HOST:PORT`: tokens are long enough for both.
 *
 * Everything here only looks at texts and one socket; nothing is kept but the rate limit.
 */
#ifndef PRB_GATEWAY_ACCESS_H
#define PRB_GATEWAY_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/vec.h"
#include "remote/token.h"
#include "remote/serve/limit.h"

enum {
	PRB_COOKIE_NAME_SIZE = PRB_REMOTE_NONCE_SIZE,
	PRB_COOKIE_SIZE = 2 * PRB_REMOTE_PROOF_SIZE + 1
};

/** Starts as {}. */
struct prb_access {
	struct prb_token token;
	struct prb_limit limit;
	PRB_VEC(char *) hosts; /**< that a request may name, as "127.0.0.1:9922" */
	const char *scheme;    /**< "http" or "https" */
	/** Its name, which has the port; zeros up to the end, as it is a part of the proof. */
	char cookie[PRB_COOKIE_NAME_SIZE];
};
void prb_access_deinit(struct prb_access *access);

/** Lets requests name @p host. */
struct prb_error *prb_access_add_host(struct prb_access *access, const char *host) PRB_MUST_CHECK;

/** The headers of a request; NULL where they are missing. */
struct prb_ask {
	const char *method, *host, *origin;
	const char *site, *mode;   /**< Sec-Fetch-Site, Sec-Fetch-Mode */
	const char *authorization; /**< whole: "Bearer …" */
	const char *cookies;	   /**< whole: "a=b; c=d" */
	const char *token;	   /**< of the address, or of the form of the first page */
	bool ours;		   /**< it has our header, Probing-Request */
	unsigned hosts;		   /**< how many Host headers it has */
	bool changes;		   /**< it changes something */
	int fd;			   /**< its connection */
	const struct sockaddr_storage *peer;
};

struct prb_access_verdict {
	unsigned status;	/**< 200, or what it is refused with */
	const char *why, *hint; /**< if it is refused */
	unsigned wait;		/**< with 429: so many seconds */
	bool by_token;		/**< it had the token: it may get a cookie */
};

struct prb_access_verdict prb_access_check(struct prb_access *access, const struct prb_ask *ask,
					   double now);

/** The cookie for the peer of that connection. */
void prb_access_cookie(const struct prb_access *access, int fd, const struct sockaddr_storage *peer,
		       char ret[PRB_COOKIE_SIZE]);

#endif

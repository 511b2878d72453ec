/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/access.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/str.h"
#include "remote/serve/user.h"

void prb_access_deinit(struct prb_access *access)
{
	char **host;

	prb_vec_each (host, &access->hosts)
		free(*host);
	prb_vec_free(&access->hosts);
}

struct prb_error *prb_access_add_host(struct prb_access *access, const char *host)
{
	char **place = prb_vec_push(&access->hosts);

	if (!place)
		return prb_error_nomem();
	return prb_str_copy(host, place);
}

static bool is_host(const struct prb_access *access, const char *host)
{
	for (size_t i = 0; i < access->hosts.count; i++)
		if (!strcasecmp(access->hosts.items[i], host))
			return true;
	return false;
}

/** An origin is a scheme and a host: both have to be ours. */
static bool is_our_origin(const struct prb_access *access, const char *origin)
{
	size_t length = strlen(access->scheme);

	return !strncmp(origin, access->scheme, length) && !strncmp(origin + length, "://", 3) &&
	       is_host(access, origin + length + 3);
}

/** A local user, or an address: in as many bytes as a nonce has. */
struct identity {
	uint8_t bytes[PRB_REMOTE_NONCE_SIZE];
	struct sockaddr_storage address; /* for the rate limit */
};

static bool user_of(int fd, const struct sockaddr_storage *peer, uid_t *ret)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);

	if (peer->ss_family != AF_UNIX)
		return prb_serve_user(fd, peer, ret);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length))
		return false;
	*ret = cred.uid;
	return true;
}

static struct identity identify(int fd, const struct sockaddr_storage *peer)
{
	struct identity id = {.address = *peer};
	uid_t user;

	if (user_of(fd, peer, &user)) {
		prb_limit_of_user(&id.address, user);
		snprintf((char *)id.bytes, sizeof(id.bytes), "user %u", user);
	} else if (peer->ss_family == AF_INET6) {
		id.bytes[0] = '6';
		memcpy(id.bytes + 1, &((const struct sockaddr_in6 *)peer)->sin6_addr, 16);
	} else if (peer->ss_family == AF_INET) {
		id.bytes[0] = '4';
		memcpy(id.bytes + 1, &((const struct sockaddr_in *)peer)->sin_addr, 4);
	}
	return id;
}

/** The proof that a client with the token had that user or address. */
static void prove(const struct prb_access *access, const struct identity *id,
		  uint8_t ret[PRB_REMOTE_PROOF_SIZE])
{
	prb_token_prove(&access->token, PRB_TOKEN_COOKIE, (const uint8_t *)access->cookie,
			id->bytes, ret);
}

void prb_access_cookie(const struct prb_access *access, int fd, const struct sockaddr_storage *peer,
		       char ret[PRB_COOKIE_SIZE])
{
	const struct identity id = identify(fd, peer);
	uint8_t proof[PRB_REMOTE_PROOF_SIZE];

	prove(access, &id, proof);
	for (size_t i = 0; i < sizeof(proof); i++)
		snprintf(ret + 2 * i, 3, "%02x", proof[i]);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool cookie_is_right(const struct prb_access *access, const struct identity *id,
			    const char *value)
{
	uint8_t expected[PRB_REMOTE_PROOF_SIZE], given[PRB_REMOTE_PROOF_SIZE];

	for (size_t i = 0; i < sizeof(given); i++) {
		int high = digit(value[2 * i]);
		int low = high < 0 ? -1 : digit(value[2 * i + 1]);

		if (low < 0)
			return false;
		given[i] = (uint8_t)(high << 4 | low);
	}
	if (value[2 * sizeof(given)] && !strchr("; ", value[2 * sizeof(given)]))
		return false;
	prove(access, id, expected);
	return prb_token_equal(expected, given);
}

/** Looks at each cookie of that name. */
static bool has_cookie(const struct prb_access *access, const struct identity *id,
		       const char *cookies)
{
	size_t length = strlen(access->cookie);

	for (const char *at = cookies; at && *at; at = strchr(at, ';')) {
		at += strspn(at, "; ");
		if (!strncmp(at, access->cookie, length) && at[length] == '=' &&
		    cookie_is_right(access, id, at + length + 1))
			return true;
	}
	return false;
}

static bool token_is_right(const struct prb_access *access, const char *text)
{
	static const uint8_t nothing[PRB_REMOTE_NONCE_SIZE];
	uint8_t expected[PRB_REMOTE_PROOF_SIZE], given[PRB_REMOTE_PROOF_SIZE];
	struct prb_token token = {};

	snprintf(token.text, sizeof(token.text), "%s", text);
	prb_token_prove(&access->token, PRB_TOKEN_CLIENT, nothing, nothing, expected);
	prb_token_prove(&token, PRB_TOKEN_CLIENT, nothing, nothing, given);
	return prb_token_equal(expected, given) && strlen(text) < sizeof(token.text);
}

static struct prb_access_verdict refuse(unsigned status, const char *why, const char *hint)
{
	return (struct prb_access_verdict){.status = status, .why = why, .hint = hint};
}

static struct prb_access_verdict check_token(struct prb_access *access, const struct identity *id,
					     const char *token, double now)
{
	double wait = prb_limit_wait(&access->limit, &id->address, now);

	if (wait > 0) {
		struct prb_access_verdict verdict =
			refuse(429, "too many wrong tokens came from there", "try again later");

		verdict.wait = (unsigned)wait + 1;
		return verdict;
	}
	if (!token_is_right(access, token)) {
		prb_limit_fail(&access->limit, &id->address, now);
		return refuse(401, "the token is wrong",
			      "the right one is in the address that 'probing serve' printed");
	}
	prb_limit_pass(&access->limit, &id->address);
	return (struct prb_access_verdict){.status = 200, .by_token = true};
}

/**
 * True for requests that a foreign page makes a browser send. Following a link to here is no harm.
 */
static bool is_foreign(const struct prb_access *access, const struct prb_ask *ask)
{
	bool followed = ask->mode && !strcmp(ask->mode, "navigate") && !strcmp(ask->method, "GET");

	if (ask->origin && !is_our_origin(access, ask->origin))
		return true;
	return ask->site && strcmp(ask->site, "same-origin") != 0 &&
	       strcmp(ask->site, "none") != 0 && !followed;
}

struct prb_access_verdict prb_access_check(struct prb_access *access, const struct prb_ask *ask,
					   double now)
{
	static const char BEARER[] = "Bearer ";
	const struct identity id = identify(ask->fd, ask->peer);

	if (ask->hosts != 1 || !ask->host || !is_host(access, ask->host))
		return refuse(403, "this gateway does not answer for that host",
			      "use the address that 'probing serve' printed, or start it with "
			      "--host NAME:PORT");
	if (is_foreign(access, ask))
		return refuse(403, "the request comes from a page of another site", NULL);
	if (ask->authorization) {
		if (strncasecmp(ask->authorization, BEARER, strlen(BEARER)) != 0)
			return refuse(401, "only 'Authorization: Bearer TOKEN' is understood",
				      NULL);
		return check_token(access, &id, ask->authorization + strlen(BEARER), now);
	}
	if (ask->cookies && has_cookie(access, &id, ask->cookies) && !ask->token) {
		if (ask->changes && !ask->ours)
			return refuse(403, "the request has no header 'Probing-Request'",
				      "send 'Probing-Request: 1', or the token as "
				      "'Authorization: Bearer TOKEN'");
		return (struct prb_access_verdict){.status = 200};
	}
	if (!ask->token)
		return refuse(401, "the token is missing",
			      "open the address that 'probing serve' printed, or send "
			      "'Authorization: Bearer TOKEN'");
	if (ask->changes)
		return refuse(403, "a token in the address changes nothing",
			      "send it as 'Authorization: Bearer TOKEN'");
	return check_token(access, &id, ask->token, now);
}

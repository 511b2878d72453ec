/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Requests to one HTTP server, ClickHouse's interface or one of files, by libcurl, which is
 * loaded when the first server is opened. Without it, servers without TLS are reached all the same
 * (remote/http_plain.h).
 *
 * The server is not trusted: answers are bounded, nothing is redirected, and a server that sends
 * nothing is given up. A request that may change something is sent at most once: libcurl sends a
 * request again if a connection that it kept turns out to be closed, so none is kept.
 *
 * Threading: one thread at a time per connection. Ownership: `error` of an outcome is the
 * caller's.
 */
#ifndef PRB_REMOTE_HTTP_H
#define PRB_REMOTE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

struct prb_http;

/** Gets a part of the body of a success. */
typedef struct prb_error *prb_http_sink(void *context, const char *data, size_t length);

struct prb_http_request {
	const char *const *parameters; /**< of the address: name, value, …, NULL */
	const char *path; /**< below the address: a GET of it, without a body; NULL: a POST */
	const void *body;
	size_t length;
	prb_http_sink *sink;
	void *context;
	double timeout_s;     /**< for all of it; 0: as long as something comes every minute */
	bool once;	      /**< it changes something */
	bool (*stop)(void *); /**< asked meanwhile: true ends it; or NULL */
	void *stop_context;
};

enum prb_http_end {
	PRB_HTTP_NOT_SENT, /**< the server has not seen it */
	PRB_HTTP_UNKNOWN,  /**< it may have seen it */
	PRB_HTTP_REFUSED,  /**< it has answered that it failed */
	PRB_HTTP_DONE,
};

struct prb_http_outcome {
	enum prb_http_end end;
	long status;
	struct prb_str error; /**< what the server says of a failure; bounded */
};

/**
 * For a server below @p address, which begins with http:// or https:// and ends in a slash.
 * PRB_ERROR_UNSUPPORTED if libcurl is not there and needed. Does not connect yet.
 */
struct prb_error *prb_http_create(const char *address, struct prb_http **ret) PRB_MUST_CHECK;

/** Of all requests. */
struct prb_error *prb_http_add_header(struct prb_http *http, const char *name,
				      const char *value) PRB_MUST_CHECK;

/** What the user can do where TLS does not come about; a constant. */
void prb_http_hint_of_tls(struct prb_http *http, const char *hint);

void prb_http_destroy(struct prb_http *http);

/**
 * Sends a request. An error means that there is no answer, or that the sink failed; whether the
 * server has seen the request is in ret->end then, too. A refusal is no error.
 */
struct prb_error *prb_http_send(struct prb_http *http, const struct prb_http_request *request,
				struct prb_http_outcome *ret) PRB_MUST_CHECK;

/** The caller's copy of @p address without user and password, for messages; NULL: out of memory. */
char *prb_http_shown(const char *address);

/** False if this program was built without libcurl: no server with TLS can be reached. */
bool prb_http_built(void);

#endif

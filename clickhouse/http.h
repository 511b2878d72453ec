/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Requests to the HTTP interface of one server, by libcurl, which is loaded when the first
 * server is opened.
 *
 * The server is not trusted: answers are bounded, nothing is redirected, and a server that sends
 * nothing is given up. A request that may change something is sent at most once: libcurl sends a
 * request again if a connection that it kept turns out to be closed, so none is kept.
 *
 * Threading: one thread at a time per connection. Ownership: `error` of an outcome is the
 * caller's.
 */
#ifndef PRB_CLICKHOUSE_HTTP_H
#define PRB_CLICKHOUSE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"
#include "clickhouse/url.h"

struct prb_http;

/** Gets a part of the body of a success. */
typedef struct prb_error *prb_http_sink(void *context, const char *data, size_t length);

struct prb_http_request {
	const char *const *parameters; /**< of the address: name, value, …, NULL */
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

/** PRB_ERROR_UNSUPPORTED if libcurl is not there. Does not connect yet. */
struct prb_error *prb_http_create(const struct prb_clickhouse_url *url, const char *password,
				  struct prb_http **ret) PRB_MUST_CHECK;
void prb_http_destroy(struct prb_http *http);

/**
 * Sends a POST. An error means that there is no answer, or that the sink failed; whether the
 * server has seen the request is in ret->end then, too. A refusal is no error.
 */
struct prb_error *prb_http_send(struct prb_http *http, const struct prb_http_request *request,
				struct prb_http_outcome *ret) PRB_MUST_CHECK;

/** False if this program was built without libcurl: no server can be reached. */
bool prb_http_built(void);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Requests without TLS, for where libcurl is not: an image with the static program and
 * nothing else. One connection for each request, which the server closes; no proxy, no redirection.
 *
 * Threading: any thread.
 */
#ifndef PRB_REMOTE_HTTP_PLAIN_H
#define PRB_REMOTE_HTTP_PLAIN_H

#include "remote/http.h"

/** True if such a request reaches the address: it begins with http:// and has no user in it. */
bool prb_http_plain_can(const char *address);

/**
 * Does what prb_http_send() does for the server of @p base, "http://HOST:PORT/". @p headers: lines
 * that end with CR and LF.
 */
struct prb_error *prb_http_plain_send(const char *base, const struct prb_str *headers,
				      const struct prb_http_request *request,
				      struct prb_http_outcome *ret) PRB_MUST_CHECK;

#endif

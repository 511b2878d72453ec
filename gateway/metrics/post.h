/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Sends a body to an HTTP server, by the command `curl`: that knows TLS, proxies and their
 * settings, and is on most machines. Secrets are passed to it in a nameless file. Where it is not,
 * a body without such headers is sent by remote/http.h.
 */
#ifndef PRB_GATEWAY_METRICS_POST_H
#define PRB_GATEWAY_METRICS_POST_H

#include "base/error.h"
#include "base/str.h"

/**
 * @p headers has the form of OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value", or NULL. Appends
 * the body of the answer to @p ret; an answer that is no success is an error.
 */
struct prb_error *prb_post(const char *url, const char *media, const char *headers,
			   const struct prb_str *body, struct prb_str *ret) PRB_MUST_CHECK;

#endif

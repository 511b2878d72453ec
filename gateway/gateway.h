/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file An HTTP gateway to the processes of this machine: an interface for programs, and a page.
 *
 * It is a process of ours; targets know nothing of it. One thread waits for everything. Each
 * request that reads a target is answered by a child (gateway/targets/child.h) within a deadline,
 * so a hostile target, or a slow one, harms that request alone. docs/http-api.md lists the
 * requests.
 *
 *     PRB_TRY(prb_gateway_create(&options, &gateway));
 *     … tell prb_gateway_url(gateway) …
 *     err = prb_gateway_run(gateway);
 *     prb_gateway_destroy(gateway);
 */
#ifndef PRB_GATEWAY_GATEWAY_H
#define PRB_GATEWAY_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "command/command.h"
#include "command/words.h"
#include "remote/token.h"

struct prb_gateway_options {
	/** Where it listens: "HOST:PORT", or "unix:PATH". NULL: nowhere, but see `adopted`. */
	const char *address;
	const struct prb_token *token;
	const struct prb_texts *targets;      /**< none: all that may be read */
	const struct prb_core_places *places; /**< of core files among them, or NULL */
	/** Options and JOB for 'cluster': where the ranks of the job on other machines are. NULL:
	 * it is on this one. */
	const struct prb_words *job;
	const char *dashboards;	       /**< folder where they are kept, or NULL */
	const struct prb_texts *hosts; /**< further names that requests may use; or NULL */
	const char *certificate, *key; /**< files for TLS, or NULL */
	bool plain;		       /**< other machines may use it without TLS */
	bool allow_write;	       /**< requests may run code in targets */
	bool read_only;		       /**< not even the own user on a unix socket may write */
	/**
	 * Connections to the address `adopted_at` are received from this socket, each as one
	 * SCM_RIGHTS descriptor; at its end the gateway ends. -1: none.
	 */
	int adopted;
	const char *adopted_at;
};

struct prb_gateway;

/** Listens, and checks the targets. PRB_ERROR_UNSUPPORTED without libmicrohttpd. */
struct prb_error *prb_gateway_create(const struct prb_gateway_options *options,
				     struct prb_gateway **ret) PRB_MUST_CHECK;
void prb_gateway_destroy(struct prb_gateway *gateway);

/** The address for a browser, without the token: "http://127.0.0.1:9922/". */
const char *prb_gateway_url(const struct prb_gateway *gateway);

/** Answers requests until SIGINT, SIGTERM or SIGHUP, which are blocked meanwhile. */
struct prb_error *prb_gateway_run(struct prb_gateway *gateway) PRB_MUST_CHECK;

#endif

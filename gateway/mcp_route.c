/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The Model Context Protocol over HTTP, its "streamable" form without streams: each message is a
 * POST, and is answered by a command `probing mcp` that lives as long as that. Nothing is kept.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gateway/gateway_private.h"

/** The longest tool watches memory for 600 s. */
static const double LIMIT_SECONDS = 800;

/** Logs calls that change something for our user, as the command does. */
static void pass_on(const struct prb_str *log)
{
	static const char MARK[] = "probing: mcp: ";

	for (const char *at = prb_str_text(log); *at;) {
		size_t length = strcspn(at, "\n");

		if (!strncmp(at, MARK, strlen(MARK)))
			fprintf(stderr, "%.*s\n", (int)length, at);
		at += length + (at[length] == '\n');
	}
}

static struct prb_error *take_answer(struct prb_request *r)
{
	pass_on(&r->child.log);
	/* A notification has no answer. */
	if (!r->reply.length)
		r->status = 202;
	return NULL;
}

/** A request, notification or answer of JSON-RPC, or several. */
static bool is_message(const json_t *message)
{
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));
	const json_t *method = json_object_get(message, "method");

	if (json_is_array(message))
		return true;
	return version && !strcmp(version, "2.0") &&
	       (json_is_string(method) || (!method && (json_object_get(message, "result") ||
						       json_object_get(message, "error"))));
}

struct prb_error *prb_answer_mcp(struct prb_request *r)
{
	json_t *message = json_loadb(prb_str_text(&r->body), r->body.length,
				     JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	/* One line, whatever it was. */
	char *line =
		is_message(message) ? json_dumps(message, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	json_decref(message);
	if (line)
		prb_str_printf(&r->input, "%s\n", line);
	free(line);
	if (!r->input.length)
		return prb_error_create(PRB_ERROR_USAGE,
					"the request's body is no message of JSON-RPC");
	r->has_input = true;
	PRB_TRY(prb_words_add(&r->words, "mcp"));
	if (r->gateway->served.named.count)
		PRB_TRY(prb_served_words_all(&r->gateway->served, &r->words));
	if (prb_may_write(r))
		PRB_TRY(prb_words_add(&r->words, "--allow-write"));
	r->finish = take_answer;
	r->limit = LIMIT_SECONDS;
	prb_request_start(r);
	return NULL;
}

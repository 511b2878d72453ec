/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replies: headers of every answer, errors as JSON. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/json.h"
#include "gateway/gateway_private.h"

/** Warnings at most, and their bytes: the headers of an answer have little room, and clients take
 * no more than a hundred. */
enum { MOST_WARNINGS = 32, MOST_BYTES = 8 << 10, OF_A_HEADER = 20 };

/** Answers are data: a browser that shows one runs nothing of it, and loads nothing. */
static const char DATA_POLICY[] = "default-src 'none'; frame-ancestors 'none'; sandbox";

static const struct {
	const char *name, *value;
} ALWAYS[] = {
	{"X-Content-Type-Options", "nosniff"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
};

static void put(struct MHD_Response *response, const char *name, const char *value)
{
	prb_mhd.add_response_header(response, name, value);
}

static void put_cookie(struct prb_request *r, struct MHD_Response *response)
{
	const struct prb_access *access = &r->gateway->access;
	char value[PRB_COOKIE_SIZE];

	prb_access_cookie(access, r->connection->fd, &r->connection->peer, value);

	prb_auto_free char *line =
		prb_format("%s=%s; Path=/; HttpOnly; SameSite=Strict%s", access->cookie, value,
			   !strcmp(access->scheme, "https") ? "; Secure" : "");
	if (line)
		put(response, "Set-Cookie", line);
}

/** Warnings of the command, one header for each, as far as there is room for headers. */
static void put_warnings(struct prb_request *r, struct MHD_Response *response)
{
	prb_auto_str struct prb_str text = {};
	size_t bytes = 0, count = 0, left_out = 0;
	char *save = NULL, more[64];

	prb_child_warnings(&r->child, &text);
	for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		bytes += strlen(line) + OF_A_HEADER;
		if (bytes <= MOST_BYTES && count++ < MOST_WARNINGS)
			put(response, "Probing-Warning", line);
		else
			left_out++;
	}
	snprintf(more, sizeof(more), "%zu more warnings", left_out);
	if (left_out)
		put(response, "Probing-Warning", more);
}

static void put_headers(struct prb_request *r, struct MHD_Response *response)
{
	char seconds[16];

	for (size_t i = 0; i < sizeof(ALWAYS) / sizeof(*ALWAYS); i++)
		put(response, ALWAYS[i].name, ALWAYS[i].value);
	/* With no-referrer, a browser would send its own form here without an origin. */
	put(response, "Referrer-Policy", r->policy ? "same-origin" : "no-referrer");
	if (r->status != 202)
		put(response, "Content-Type", r->media ? r->media : "application/json");
	put(response, "Cache-Control", r->packed ? "no-cache" : "no-store");
	put(response, "Content-Security-Policy", r->policy ? r->policy : DATA_POLICY);
	if (r->packed)
		put(response, "Content-Encoding", "gzip");
	if (r->file) {
		prb_auto_free char *line = prb_format("attachment; filename=\"%s\"", r->file);

		if (line)
			put(response, "Content-Disposition", line);
	}
	if (r->location)
		put(response, "Location", r->location);
	if (r->verdict.wait) {
		snprintf(seconds, sizeof(seconds), "%u", r->verdict.wait);
		put(response, "Retry-After", seconds);
	}
	if (r->status == 401)
		put(response, "WWW-Authenticate", "Bearer");
	if (r->status == 405) {
		prb_auto_str struct prb_str methods = {};

		prb_route_methods(r, &methods);
		put(response, "Allow", prb_str_text(&methods));
	}
	if (r->terminal && r->status == 200) {
		prb_auto_free char *name = prb_format("t%u", r->terminal);

		if (name)
			put(response, "Probing-Terminal", name);
	}
	if (r->set_cookie)
		put_cookie(r, response);
	put_warnings(r, response);
}

enum MHD_Result prb_reply_send(struct prb_request *r)
{
	bool streamed = r->child.out >= 0 || r->child.pid || r->every > 0;
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!r->status)
		r->status = 200;
	if (r->reply.failed)
		prb_reply_error(r, prb_error_nomem());
	if (streamed && r->status == 200)
		response = prb_mhd.create_response_from_callback(
			MHD_SIZE_UNKNOWN, 64 << 10,
			r->every > 0 ? prb_event_read : prb_request_read, r, NULL);
	else if (r->fixed)
		response = prb_mhd.create_response_from_buffer(
			r->fixed_length, (void *)(uintptr_t)r->fixed, MHD_RESPMEM_PERSISTENT);
	else
		/* The request, and so the text, lives until all was sent. */
		response = prb_mhd.create_response_from_buffer(
			r->reply.length, (void *)(uintptr_t)prb_str_text(&r->reply),
			MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO;
	r->state = PRB_REQUEST_ANSWERED;
	put_headers(r, response);
	result = prb_mhd.queue_response(r->mhd, r->status, response);
	prb_mhd.destroy_response(response);
	return result;
}

struct kind {
	enum prb_error_code code;
	unsigned status;
	const char *name;
};

/** The status and name of each kind of error: the only place that chooses them. */
static const struct kind KINDS[] = {
	{PRB_ERROR_USAGE, 400, "usage"},
	{PRB_ERROR_PERMISSION, 403, "permission"},
	{PRB_ERROR_NO_PROCESS, 404, "no_process"},
	{PRB_ERROR_NOT_FOUND, 404, "not_found"},
	{PRB_ERROR_UNSUPPORTED, 422, "unsupported"},
	{PRB_ERROR_FAULT, 422, "unreadable"},
	{PRB_ERROR_BAD_DATA, 422, "unreadable"},
	{PRB_ERROR_CANCELLED, 503, "busy"},
	{PRB_ERROR_TIMEOUT, 504, "timeout"},
	{PRB_ERROR_FAILED, 500, "failed"}, /* and all others */
};
static const struct kind CONFLICT = {PRB_ERROR_OS, 409, "conflict"};
/** The request was well-formed, and what it says was refused: SQL, an expression, a dashboard. */
static const struct kind INVALID = {PRB_ERROR_USAGE, 422, "invalid"};

static const struct kind *kind_of(const struct prb_request *r, const struct prb_error *err)
{
	const struct kind *kind = KINDS;

	if (prb_conflict_is(err))
		return &CONFLICT;
	if (err->code == PRB_ERROR_USAGE && r->refused)
		return &INVALID;
	while (kind->code != err->code && kind->code != PRB_ERROR_FAILED)
		kind++;
	return kind;
}

void prb_reply_error(struct prb_request *r, struct prb_error *err)
{
	const struct kind *kind = kind_of(r, err);
	struct prb_json json = {&r->reply};

	if (r->status < 400)
		r->status = kind->status;
	prb_str_deinit(&r->reply);
	r->reply = (struct prb_str){};
	r->media = NULL;
	r->policy = NULL;
	r->fixed = NULL;
	free(prb_steal(&r->file));
	prb_json_open(&json, NULL, '{');
	prb_json_open(&json, "error", '{');
	prb_json_text(&json, "code", kind->name);
	prb_json_text(&json, "message", err->message);
	prb_json_text(&json, "hint", err->hint);
	prb_json_close(&json, '}');
	prb_json_close(&json, '}');
	prb_str_putc(&r->reply, '\n');
	prb_error_destroy(err);
}

void prb_reply_refusal(struct prb_request *r)
{
	const struct prb_access_verdict *v = &r->verdict;
	struct prb_error *err;

	r->status = v->status;
	if (v->status == 401 && (r->form || (!strcmp(r->path, "/") && !strcmp(r->method, "GET")))) {
		prb_page_login(r);
		return;
	}
	err = prb_error_create(PRB_ERROR_PERMISSION, "%s", v->why);
	prb_reply_error(r, v->hint ? prb_error_hint(err, "%s", v->hint) : err);
}

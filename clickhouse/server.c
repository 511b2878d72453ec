/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "clickhouse/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"

enum {
	NOT_FOUND = 372, /* "Session not found" */
	MAX_ANSWER = 8 << 20,
	MAX_SAID = 600, /* bytes of what the server says of a failure */
};

static const double ASK_S = 30, INSERT_S = 120;
/** Seconds after which the server ends an unused session: one for inserts, and one to be ended. */
static const char KEEP_S[] = "60", END_S[] = "1";

struct prb_error *prb_clickhouse_open(const char *url, const char *password_file,
				      struct prb_clickhouse *ret)
{
	struct prb_error *err;

	*ret = (struct prb_clickhouse){};
	PRB_TRY(prb_clickhouse_url_parse(url, &ret->url));
	err = prb_clickhouse_log_in(ret, password_file);
	if (err)
		prb_clickhouse_close(ret);
	return err;
}

static struct prb_error *add_headers(struct prb_http *http, const char *user, const char *password)
{
	PRB_TRY(prb_http_add_header(http, "X-ClickHouse-User", user));
	if (*password)
		PRB_TRY(prb_http_add_header(http, "X-ClickHouse-Key", password));
	PRB_TRY(prb_http_add_header(http, "Content-Type", "application/octet-stream"));
	/* Else libcurl waits a second for servers that do not know it. */
	return prb_http_add_header(http, "Expect", "");
}

static struct prb_error *create(const struct prb_clickhouse_url *url, const char *password,
				struct prb_http **ret)
{
	bool six = strchr(url->address.host, ':') != NULL;
	prb_auto_free char *base = NULL;
	struct prb_error *err;

	for (const char *at = password; *at; at++)
		if ((unsigned char)*at < ' ')
			return prb_error_create(PRB_ERROR_USAGE,
						"the password has a control character");
	base = prb_format("http%s://%s%s%s:%d/", url->tls ? "s" : "", six ? "[" : "",
			  url->address.host, six ? "]" : "", url->address.port);
	if (!base)
		return prb_error_nomem();
	PRB_TRY(prb_http_create(base, ret));
	prb_http_hint_of_tls(*ret, "clickhouses:// is for a port that uses TLS, clickhouse:// for "
				   "one that does not");
	err = add_headers(*ret, url->user, password);
	if (err)
		prb_http_destroy(*ret);
	return err;
}

struct prb_error *prb_clickhouse_log_in(struct prb_clickhouse *server, const char *password_file)
{
	prb_auto_free char *password = NULL;
	struct prb_http *http;

	PRB_TRY(prb_clickhouse_password(password_file, &password));
	PRB_TRY(create(&server->url, password, &http));
	prb_http_destroy(server->http);
	server->http = http;
	return NULL;
}

void prb_clickhouse_close(struct prb_clickhouse *server)
{
	prb_http_destroy(server->http);
	prb_clickhouse_url_deinit(&server->url);
	*server = (struct prb_clickhouse){};
}

void prb_clickhouse_quote(struct prb_str *s, const char *text)
{
	prb_str_putc(s, '\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			prb_str_putc(s, '\\');
		prb_str_putc(s, *text);
	}
	prb_str_putc(s, '\'');
}

/** A line without the names of exceptions; a line equal to the previous one is left out. */
static void put_line(struct prb_str *s, const char *line, size_t length)
{
	static const char mark[] = "Exception: ";
	prb_auto_str struct prb_str text = {}, said = {};
	const char *begin, *end;

	prb_str_append(&text, line, length);
	begin = strstr(prb_str_text(&text), mark);
	begin = begin ? begin + strlen(mark) : prb_str_text(&text);
	begin += strspn(begin, " ");
	end = strstr(begin, ", e.what()");
	if (!end)
		end = strstr(begin, " (version ");
	length = end ? (size_t)(end - begin) : strlen(begin);
	while (length && begin[length - 1] == ' ')
		length--;
	prb_text_escape_bytes(&said, begin, length);
	if (!said.length || said.failed || strstr(prb_str_text(s), prb_str_text(&said)))
		return;
	if (s->length)
		prb_str_puts(s, s->data[s->length - 1] == ':' ? " " : "; ");
	prb_str_puts(s, prb_str_text(&said));
}

/** On one line: which shard is dead is said on the fourth one. */
static void put_said(struct prb_str *s, const char *text)
{
	for (const char *at = text; *at && s->length < MAX_SAID;) {
		size_t line = strcspn(at, "\n");

		put_line(s, at, PRB_MIN(line, (size_t)MAX_SAID));
		at += line + (at[line] == '\n');
	}
}

/** "Code: 60, e.displayText() = DB::Exception: Table …, e.what() = …", or as newer servers say. */
static struct prb_error *refusal(struct prb_clickhouse *server, struct prb_http_outcome *outcome)
{
	prb_auto_str struct prb_str said = {};
	const char *text = prb_str_text(&outcome->error);

	if (sscanf(text, "Code: %9d", &server->code) != 1)
		server->code = 0;
	put_said(&said, text);
	if (outcome->status == 401 || outcome->status == 403 || server->code == 192 ||
	    server->code == 193 || server->code == 516)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_PERMISSION, "ClickHouse refuses user %s: %s",
					 server->url.user, prb_str_text(&said)),
			"the password is read from PROBING_CLICKHOUSE_PASSWORD or --password-file");
	return prb_error_create(PRB_ERROR_FAILED, "ClickHouse: %s (status %ld)",
				said.length ? prb_str_text(&said) : "no reason", outcome->status);
}

/** Sends it, with the parameters that every request has. @p more ends with NULL. */
static struct prb_error *send_to(struct prb_clickhouse *server, const char *const *more,
				 struct prb_http_request *request, enum prb_http_end *end)
{
	const char *parameters[20] = {"database", server->url.database, "wait_end_of_query", "1"};
	struct prb_http_outcome outcome = {};
	struct prb_error *err;
	size_t count = 4;

	for (; more && *more && count + 1 < PRB_ARRAY_SIZE(parameters); more++)
		parameters[count++] = *more;
	request->parameters = parameters;
	request->stop = server->stop;
	request->stop_context = server->stop_context;
	server->code = 0;
	err = prb_http_send(server->http, request, &outcome);
	*end = outcome.end;
	if (!err && outcome.end == PRB_HTTP_REFUSED)
		err = refusal(server, &outcome);
	prb_str_deinit(&outcome.error);
	return err;
}

static struct prb_error *collect(void *context, const char *data, size_t length)
{
	struct prb_str *text = context;

	if (text->length + length > MAX_ANSWER)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"ClickHouse: the answer is longer than %d MiB",
					MAX_ANSWER >> 20);
	prb_str_append(text, data, length);
	return text->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_clickhouse_ask(struct prb_clickhouse *server, const char *sql,
				     struct prb_str *ret)
{
	struct prb_str unwanted = {};
	struct prb_http_request request = {.body = sql,
					   .length = strlen(sql),
					   .sink = collect,
					   .context = ret ? ret : &unwanted,
					   .timeout_s = ASK_S};
	enum prb_http_end end;
	struct prb_error *err = send_to(server, NULL, &request, &end);

	prb_str_deinit(&unwanted);
	return err;
}

struct prb_error *prb_clickhouse_select(struct prb_clickhouse *server, const char *sql,
					double timeout_s, prb_http_sink *sink, void *context)
{
	struct prb_http_request request = {.body = sql,
					   .length = strlen(sql),
					   .sink = sink,
					   .context = context,
					   .timeout_s = timeout_s};
	const char *const only_reads[] = {"readonly", "1", NULL};
	enum prb_http_end end;
	struct prb_error *err = send_to(server, only_reads, &request, &end);

	/*
	 * A read-only user may not set "readonly". A statement that writes fails with the same
	 * code.
	 */
	if (!err || !strstr(err->message, "Cannot modify 'readonly'"))
		return err;
	prb_error_destroy(err);
	return send_to(server, NULL, &request, &end);
}

/** Database "default" is there before ours is made. */
static struct prb_error *make_database(struct prb_clickhouse *server)
{
	prb_auto_free char *sql =
		prb_format("CREATE DATABASE IF NOT EXISTS `%s`", server->url.database);
	struct prb_http_request request = {
		.body = sql, .length = sql ? strlen(sql) : 0, .timeout_s = ASK_S};
	const char *const parameters[] = {"database", "default", NULL};
	struct prb_http_outcome outcome = {};
	struct prb_error *err;

	if (!sql)
		return prb_error_nomem();
	request.parameters = parameters;
	err = prb_http_send(server->http, &request, &outcome);
	if (!err && outcome.end == PRB_HTTP_REFUSED)
		err = refusal(server, &outcome);
	prb_str_deinit(&outcome.error);
	return err;
}

struct prb_error *prb_clickhouse_greet(struct prb_clickhouse *server)
{
	prb_auto_str struct prb_str text = {};
	struct prb_error *err;

	if (server->major)
		return NULL;
	err = prb_clickhouse_ask(server, "SELECT version()", &text);
	if (err && server->code == PRB_CLICKHOUSE_UNKNOWN_DATABASE) {
		prb_error_destroy(err);
		PRB_TRY(make_database(server));
		err = prb_clickhouse_ask(server, "SELECT version()", &text);
	}
	if (err)
		return err;
	if (sscanf(prb_str_text(&text), "%9u.%9u", &server->major, &server->minor) != 2 ||
	    !server->major) {
		server->major = 0;
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"%s does not answer as ClickHouse does",
					server->url.address.host);
	}
	return NULL;
}

bool prb_clickhouse_is_from(const struct prb_clickhouse *server, unsigned major, unsigned minor)
{
	return server->major > major || (server->major == major && server->minor >= minor);
}

struct prb_error *prb_clickhouse_begin(struct prb_clickhouse *server, const char *session)
{
	const char *const parameters[] = {"session_id", session, "session_timeout", KEEP_S, NULL};
	struct prb_http_request request = {
		.body = "SELECT 1", .length = strlen("SELECT 1"), .once = true, .timeout_s = ASK_S};
	enum prb_http_end end;

	*server->session = '\0';
	PRB_TRY(send_to(server, parameters, &request, &end));
	snprintf(server->session, sizeof(server->session), "%s", session);
	return NULL;
}

struct prb_error *prb_clickhouse_insert(struct prb_clickhouse *server, const char *sql,
					const struct prb_str *rows, bool *known)
{
	const char *parameters[] = {"query",
				    sql,
				    "session_id",
				    server->session,
				    "session_check",
				    "1",
				    "session_timeout",
				    KEEP_S,
				    NULL,
				    NULL,
				    NULL};
	struct prb_http_request request = {
		.body = rows->data, .length = rows->length, .once = true, .timeout_s = INSERT_S};
	enum prb_http_end end;
	struct prb_error *err;

	/* Where an insert may be answered before it is done. */
	if (prb_clickhouse_is_from(server, 21, 11)) {
		parameters[8] = "async_insert";
		parameters[9] = "0";
	}
	err = send_to(server, parameters, &request, &end);
	*known = end == PRB_HTTP_DONE || end == PRB_HTTP_NOT_SENT ||
		 (end == PRB_HTTP_REFUSED &&
		  (server->code == NOT_FOUND || server->code == PRB_CLICKHOUSE_LOCKED));
	if (err && server->code == NOT_FOUND)
		*server->session = '\0';
	return err;
}

struct prb_error *prb_clickhouse_fence(struct prb_clickhouse *server, const char *session,
				       bool *done)
{
	const char *const parameters[] = {
		"session_id", session, "session_check", "1", "session_timeout", END_S, NULL};
	struct prb_http_request request = {
		.body = "SELECT 1", .length = strlen("SELECT 1"), .once = true, .timeout_s = ASK_S};
	enum prb_http_end end;
	struct prb_error *err = send_to(server, parameters, &request, &end);

	*done = err && server->code == NOT_FOUND;
	if (err && (server->code == NOT_FOUND || server->code == PRB_CLICKHOUSE_LOCKED)) {
		prb_error_destroy(err);
		return NULL;
	}
	return err;
}

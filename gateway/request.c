/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One request, from its first line to its answer, as libmicrohttpd calls us. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gateway/gateway_private.h"

/** Headers that a request may have once only. */
struct hosts {
	unsigned count;
};

static enum MHD_Result count_hosts(void *context, enum MHD_ValueKind kind, const char *name,
				   size_t name_size, const char *value, size_t value_size)
{
	struct hosts *hosts = context;

	(void)kind;
	(void)name_size;
	(void)value;
	(void)value_size;
	hosts->count += name && !strcasecmp(name, "Host");
	return MHD_YES;
}

static const char *header(struct prb_request *r, const char *name)
{
	return prb_mhd.lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

static bool is_get(const struct prb_request *r)
{
	return !strcmp(r->method, "GET");
}

static void check(struct prb_request *r, const char *form_token)
{
	struct hosts hosts = {};

	prb_mhd.get_connection_values_n(r->mhd, MHD_HEADER_KIND, count_hosts, &hosts);

	const char *given =
		is_get(r) ? prb_mhd.lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, "token")
			  : NULL;
	const struct prb_ask ask = {
		.method = r->method,
		.host = header(r, "Host"),
		.hosts = hosts.count,
		.origin = header(r, "Origin"),
		.site = header(r, "Sec-Fetch-Site"),
		.mode = header(r, "Sec-Fetch-Mode"),
		.authorization = header(r, "Authorization"),
		.cookies = header(r, "Cookie"),
		.token = form_token ? form_token : given,
		.ours = header(r, "Probing-Request"),
		.changes = !is_get(r) && !r->form,
		.fd = r->connection->fd,
		.peer = &r->connection->peer,
	};

	r->verdict = prb_access_check(&r->gateway->access, &ask, r->gateway->now);
	r->set_cookie =
		r->verdict.status == 200 && r->verdict.by_token && ask.token && !ask.authorization;
	r->followed =
		ask.site && strcmp(ask.site, "same-origin") != 0 && strcmp(ask.site, "none") != 0;
	r->connection->let_in |= r->verdict.status == 200;
}

static struct prb_connection *connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		prb_mhd.get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

void *prb_request_address(void *context, const char *address, struct MHD_Connection *mhd)
{
	struct prb_connection *connection = connection_of(mhd);

	(void)context;
	if (connection)
		connection->has_nul = strstr(address, "%00");
	return NULL;
}

static struct prb_request *create(struct prb_gateway *g, struct MHD_Connection *mhd,
				  const char *url, const char *method)
{
	struct prb_connection *connection = connection_of(mhd);
	struct prb_request *r = connection ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	r->gateway = g;
	r->mhd = mhd;
	r->connection = connection;
	r->child = (struct prb_child){.out = -1, .err = -1};
	r->method = strdup(method);
	r->path = strdup(url);
	if (r->method && r->path)
		return r;
	prb_request_forget(r);
	return NULL;
}

/** Takes "token=…" of the form on the first page: what a browser sends of the letters of a token.
 */
static void take_form(struct prb_request *r)
{
	static const char NAME[] = "token=";
	prb_auto_str struct prb_str token = {};
	const char *at = prb_str_text(&r->body);

	at = strncmp(at, NAME, strlen(NAME)) == 0 ? at + strlen(NAME) : "";
	for (; *at && *at != '&'; at++) {
		char digits[3] = {at[0] == '%' ? at[1] : 0, at[0] == '%' && at[1] ? at[2] : 0};

		prb_str_putc(&token, *digits ? (char)strtol(digits, NULL, 16) : *at);
		at += strlen(digits);
	}
	check(r, prb_str_text(&token));
	if (r->verdict.status != 200)
		return;
	r->status = 303;
	r->location = "/";
}

static void answer(struct prb_request *r)
{
	struct prb_error *err;

	if (r->form)
		take_form(r);
	if (r->verdict.status != 200) {
		prb_reply_refusal(r);
		return;
	}
	if (r->form)
		return;
	if (r->too_long) {
		r->status = 413;
		prb_reply_error(r,
				prb_error_create(PRB_ERROR_USAGE, "the request has over %d bytes",
						 PRB_GATEWAY_MAX_BODY));
		return;
	}
	if (r->connection->has_nul) {
		prb_reply_error(r,
				prb_error_create(PRB_ERROR_USAGE, "the address has a NUL in it"));
		return;
	}
	if (prb_page_find(r))
		return;
	err = prb_route_find(r);
	if (!err && r->route->writes && !prb_may_write(r))
		err = prb_error_hint(
			prb_error_create(PRB_ERROR_PERMISSION, "this gateway changes no target"),
			"start it with --allow-write");
	if (!err)
		err = prb_params_take(r);
	if (!err)
		prb_served_settle(&r->gateway->served, r->id);
	if (!err && r->route->writes && !r->route->quiet)
		prb_write_audit(r);
	if (!err)
		err = r->route->answer(r);
	if (err)
		prb_reply_error(r, err);
}

/** Its body, which is left unread if it is refused. */
static void take(struct prb_request *r, const char *data, size_t size)
{
	if (r->verdict.status != 200 && !r->form)
		return;
	r->too_long |= size > PRB_GATEWAY_MAX_BODY - r->body.length;
	if (r->form && size > 1024 - PRB_MIN(r->body.length, (size_t)1024))
		return;
	if (!r->too_long)
		prb_str_append(&r->body, data, size);
}

enum MHD_Result prb_request_handle(void *context, struct MHD_Connection *mhd, const char *url,
				   const char *method, const char *version, const char *data,
				   size_t *size, void **place)
{
	struct prb_request *r = *place;

	(void)version;
	if (!r) {
		*place = r = create(context, mhd, url, method);
		if (!r)
			return MHD_NO;
		r->connection->busy = false;
		r->form = !strcmp(url, "/login") && !strcmp(method, "POST");
		if (!r->form)
			check(r, NULL);
		return MHD_YES;
	}
	if (*size) {
		take(r, data, *size);
		*size = 0;
		return MHD_YES;
	}
	r->connection->busy = true;
	if (r->state == PRB_REQUEST_RECEIVED)
		answer(r);
	/* It is suspended, and asked again when there is something. */
	if (r->state == PRB_REQUEST_QUEUED || r->state == PRB_REQUEST_RUNS)
		return MHD_YES;
	return prb_reply_send(r);
}

void prb_request_completed(void *context, struct MHD_Connection *mhd, void **place,
			   enum MHD_RequestTerminationCode why)
{
	struct prb_request *r = *place;
	struct prb_gateway *g = context;

	(void)mhd;
	(void)why;
	if (!r)
		return;
	r->connection->busy = false;
	r->connection->since = g->now;
	prb_request_forget(r);
	*place = NULL;
}

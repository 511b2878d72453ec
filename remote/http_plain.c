/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/http_plain.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "remote/socket_address.h"

enum {
	MAX_HEAD = 64 << 10,
	MAX_ERROR = 64 << 10, /* of a failure */
	CONNECT_S = 5,
	IDLE_S = 60, /* without a byte in either direction */
	ASK_MS = 50, /* how often the caller may end a request */
	CHUNK = 65536,
};

static const char SCHEME[] = "http://";

struct exchange {
	const struct prb_http_request *request;
	struct prb_http_outcome *outcome;
	const char *host; /* "HOST:PORT" */
	const char *base; /* the address below the host: "/" */
	int fd;
	double until; /* of all; 0: no limit */
	char buffer[CHUNK];
	size_t at, end; /* what was received and not taken */
	bool over;	/* nothing more comes */
	bool cut;	/* nothing more is taken of what it says of a failure */
};

bool prb_http_plain_can(const char *address)
{
	const char *host = address + strlen(SCHEME);

	return !strncmp(address, SCHEME, strlen(SCHEME)) &&
	       !memchr(host, '@', strcspn(host, "/?#"));
}

static struct prb_error *no_answer(const struct exchange *x, enum prb_error_code code,
				   const char *why)
{
	return prb_error_create(code, "no answer from http://%s/: %s", x->host, why);
}

/** Waits until the socket is ready for @p events, for @p seconds at most. */
static struct prb_error *wait_for(const struct exchange *x, short events, double seconds)
{
	const struct prb_http_request *r = x->request;
	const double limit = prb_clock_seconds() + seconds;
	struct pollfd polled = {.fd = x->fd, .events = events};

	for (;;) {
		const double now = prb_clock_seconds();

		if (r->stop && r->stop(r->stop_context))
			return prb_error_create(PRB_ERROR_CANCELLED,
						"the request to http://%s/ was cancelled", x->host);
		if (now >= limit || (x->until > 0 && now >= x->until))
			return no_answer(x, PRB_ERROR_TIMEOUT, "it takes too long");
		if (poll(&polled, 1, ASK_MS) > 0)
			return NULL;
	}
}

static struct prb_error *connect_to(struct exchange *x, const struct addrinfo *address)
{
	int problem = 0;
	socklen_t size = sizeof(problem);

	x->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (x->fd < 0)
		return prb_error_os(errno, "cannot make a socket");
	if (!connect(x->fd, address->ai_addr, address->ai_addrlen))
		return NULL;
	if (errno == EINPROGRESS) {
		PRB_TRY(wait_for(x, POLLOUT, CONNECT_S));
		if (!getsockopt(x->fd, SOL_SOCKET, SO_ERROR, &problem, &size) && !problem)
			return NULL;
		errno = problem;
	}
	return no_answer(x, PRB_ERROR_FAILED, strerror(errno));
}

static struct prb_error *open_connection(struct exchange *x)
{
	const char *bracket = strchr(x->host, ']');
	prb_auto_free char *place =
		prb_format("%s%s", x->host, strchr(bracket ? bracket : x->host, ':') ? "" : ":80");
	struct addrinfo *list = NULL;
	struct prb_error *err;

	if (!place)
		return prb_error_nomem();
	PRB_TRY(prb_address_resolve(place, false, &list));
	err = no_answer(x, PRB_ERROR_FAILED, "it has no address");
	for (const struct addrinfo *one = list; err && one; one = one->ai_next) {
		if (x->fd >= 0)
			close(prb_steal_fd(&x->fd));
		prb_error_destroy(err);
		err = connect_to(x, one);
	}
	freeaddrinfo(list);
	return err;
}

static struct prb_error *send_all(struct exchange *x, const char *data, size_t length)
{
	while (length) {
		ssize_t sent = send(x->fd, data, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			PRB_TRY(wait_for(x, POLLOUT, IDLE_S));
		else if (sent < 0 && errno != EINTR)
			return no_answer(x, PRB_ERROR_FAILED, strerror(errno));
		data += sent > 0 ? sent : 0;
		length -= sent > 0 ? (size_t)sent : 0;
	}
	return NULL;
}

/** Receives more, or finds that it is over. */
static struct prb_error *receive(struct exchange *x)
{
	ssize_t got;

	for (;;) {
		got = recv(x->fd, x->buffer, sizeof(x->buffer), 0);
		if (got >= 0)
			break;
		if (errno == EAGAIN)
			PRB_TRY(wait_for(x, POLLIN, IDLE_S));
		else if (errno != EINTR)
			return no_answer(x, PRB_ERROR_FAILED, strerror(errno));
	}
	x->at = 0;
	x->end = (size_t)got;
	x->over = !got;
	return NULL;
}

/** The next byte; -1 at the end. */
static struct prb_error *next(struct exchange *x, int *ret)
{
	if (x->at == x->end && !x->over)
		PRB_TRY(receive(x));
	*ret = x->at < x->end ? (unsigned char)x->buffer[x->at++] : -1;
	return NULL;
}

/** Replaces @p line by the next one, without what ends it. */
static struct prb_error *read_line(struct exchange *x, struct prb_str *line, size_t *room)
{
	int byte;

	prb_str_truncate(line, 0);
	for (;;) {
		PRB_TRY(next(x, &byte));
		if (byte < 0 || !*room)
			return no_answer(x, PRB_ERROR_FAILED, "it is none of HTTP");
		if (byte == '\n')
			break;
		--*room;
		if (byte != '\r')
			prb_str_putc(line, (char)byte);
	}
	return line->failed ? prb_error_nomem() : NULL;
}

/** How the length of a body is known. */
struct body {
	bool chunked, known;
	uint64_t length; /* if known */
};

static const char *value_of(const char *line, const char *name)
{
	const size_t length = strlen(name);

	if (strncasecmp(line, name, length) != 0 || line[length] != ':')
		return NULL;
	line += length + 1;
	return line + strspn(line, " \t");
}

static struct prb_error *read_head(struct exchange *x, struct body *ret)
{
	prb_auto_str struct prb_str line = {};
	size_t room = MAX_HEAD;

	do {
		*ret = (struct body){};
		PRB_TRY(read_line(x, &line, &room));
		if (strncmp(prb_str_text(&line), "HTTP/1.", 7) != 0 || line.length < 12)
			return no_answer(x, PRB_ERROR_FAILED, "it is none of HTTP");
		x->outcome->status = strtol(line.data + 9, NULL, 10);
		for (;;) {
			const char *value;

			PRB_TRY(read_line(x, &line, &room));
			if (!line.length)
				break;
			value = value_of(line.data, "Transfer-Encoding");
			ret->chunked |= value && strcasestr(value, "chunked");
			value = value_of(line.data, "Content-Length");
			if (value && isdigit((unsigned char)*value)) {
				ret->length = strtoull(value, NULL, 10);
				ret->known = true;
			}
		}
	} while (x->outcome->status / 100 == 1);
	return NULL;
}

static struct prb_error *take(struct exchange *x, const char *data, size_t length)
{
	struct prb_http_outcome *outcome = x->outcome;

	if (outcome->status == 200)
		return x->request->sink ? x->request->sink(x->request->context, data, length)
					: NULL;
	x->cut = outcome->error.length + length > MAX_ERROR;
	prb_str_append(&outcome->error, data, PRB_MIN(length, MAX_ERROR - outcome->error.length));
	return x->cut ? no_answer(x, PRB_ERROR_FAILED, "it is too long") : NULL;
}

/** Takes @p length bytes, or with @p all as many as there are; less is an error. */
static struct prb_error *take_bytes(struct exchange *x, uint64_t length, bool all)
{
	while (all || length) {
		if (x->at == x->end && !x->over)
			PRB_TRY(receive(x));
		if (x->over)
			return all ? NULL : no_answer(x, PRB_ERROR_FAILED, "it ends early");

		const size_t part =
			all ? x->end - x->at : (size_t)PRB_MIN((uint64_t)(x->end - x->at), length);

		PRB_TRY(take(x, x->buffer + x->at, part));
		x->at += part;
		length -= all ? 0 : part;
	}
	return NULL;
}

static struct prb_error *take_chunks(struct exchange *x)
{
	prb_auto_str struct prb_str line = {};

	for (;;) {
		size_t room = MAX_HEAD;
		uint64_t length;
		char *end;

		PRB_TRY(read_line(x, &line, &room));
		length = strtoull(prb_str_text(&line), &end, 16);
		if (!isxdigit((unsigned char)*prb_str_text(&line)) ||
		    (*end && *end != ';' && *end != ' '))
			return no_answer(x, PRB_ERROR_FAILED, "it is none of HTTP");
		if (!length)
			return NULL;
		PRB_TRY(take_bytes(x, length, false));
		PRB_TRY(read_line(x, &line, &room));
	}
}

/** Appends a value of an address: letters and digits stay. */
static void put_escaped(struct prb_str *s, const char *text)
{
	for (; *text; text++)
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			prb_str_putc(s, *text);
		else
			prb_str_printf(s, "%%%02X", (unsigned char)*text);
}

static void put_head(struct prb_str *s, const struct exchange *x, const struct prb_str *headers)
{
	const struct prb_http_request *r = x->request;

	prb_str_printf(s, "%s %s%s", r->path ? "GET" : "POST", *x->base ? x->base : "/",
		       r->path ? r->path : "");
	for (const char *const *at = r->parameters; at && *at; at += 2) {
		prb_str_printf(s, "%c%s=", at == r->parameters ? '?' : '&', at[0]);
		put_escaped(s, at[1]);
	}
	prb_str_printf(s, " HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", x->host);
	if (!r->path)
		prb_str_printf(s, "Content-Length: %zu\r\n", r->length);
	prb_str_puts(s, prb_str_text(headers));
	prb_str_puts(s, "\r\n");
}

static struct prb_error *exchange(struct exchange *x, const struct prb_str *headers)
{
	prb_auto_str struct prb_str head = {};
	struct prb_error *err;
	struct body body;

	put_head(&head, x, headers);
	if (head.failed)
		return prb_error_nomem();
	PRB_TRY(open_connection(x));
	x->outcome->end = PRB_HTTP_UNKNOWN;
	PRB_TRY(send_all(x, head.data, head.length));
	if (!x->request->path && x->request->length)
		PRB_TRY(send_all(x, x->request->body, x->request->length));
	PRB_TRY(read_head(x, &body));
	err = body.chunked ? take_chunks(x) : take_bytes(x, body.length, !body.known);
	if (err && !x->cut)
		return err;
	prb_error_destroy(err);
	x->outcome->end = x->outcome->status == 200 ? PRB_HTTP_DONE : PRB_HTTP_REFUSED;
	return x->outcome->error.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_http_plain_send(const char *base, const struct prb_str *headers,
				      const struct prb_http_request *request,
				      struct prb_http_outcome *ret)
{
	const char *host = base + strlen(SCHEME);
	prb_auto_free char *place = strndup(host, strcspn(host, "/"));
	prb_auto_free struct exchange *x = calloc(1, sizeof(*x));
	struct prb_error *err;

	*ret = (struct prb_http_outcome){.end = PRB_HTTP_NOT_SENT};
	if (!place || !x)
		return prb_error_nomem();
	x->request = request;
	x->outcome = ret;
	x->host = place;
	x->base = host + strlen(place);
	x->fd = -1;
	x->until = request->timeout_s > 0 ? prb_clock_seconds() + request->timeout_s : 0;
	err = exchange(x, headers);
	if (x->fd >= 0)
		close(x->fd);
	return err;
}

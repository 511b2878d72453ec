/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote/socket_address.h"
#include "remote/token.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"

static const double CONNECT_SECONDS = 10, ANSWER_SECONDS = 10;
enum { CHUNK = 64 << 10 };

void prb_link_close(struct prb_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	prb_str_deinit(&link->in);
	prb_str_deinit(&link->out);
	link->fd = -1;
}

static int milliseconds_to(double by)
{
	return (int)(PRB_MAX(by - prb_clock_seconds(), 0) * 1000) + 1;
}

/** Connects to one of the addresses of a host; -1 with errno. */
static int connect_to(const struct addrinfo *info, double by)
{
	prb_auto_close int fd =
		socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	socklen_t length = sizeof(int);
	int why = 0, yes = 1;

	if (fd < 0)
		return -1;
	if (connect(fd, info->ai_addr, info->ai_addrlen)) {
		if (errno != EINPROGRESS)
			return -1;
		if (poll(&wait, 1, milliseconds_to(by)) < 1) {
			errno = ETIMEDOUT;
			return -1;
		}
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &length);
		errno = why;
		if (why)
			return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	return prb_steal_fd(&fd);
}

static struct prb_error *cannot_connect(int why, const char *target)
{
	if (why == ECONNREFUSED)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NO_PROCESS, "nobody listens at %.200s", target),
			"'probing PID inject -l ADDRESS' at that machine serves a "
			"process; the service ends with it");
	if (why == ETIMEDOUT)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT, "%.200s does not answer", target),
			"a firewall may keep us away; an ssh://HOST/PID target goes "
			"around it");
	return prb_error_os(why, "cannot connect to %.200s", target);
}

static struct prb_error *connect_link(struct prb_link *link)
{
	double by = prb_clock_seconds() + CONNECT_SECONDS;
	struct addrinfo *list;
	int why = 0;

	PRB_TRY(prb_address_resolve(link->target, false, &list));
	for (const struct addrinfo *info = list; info && link->fd < 0; info = info->ai_next) {
		link->fd = connect_to(info, by);
		why = errno;
	}
	freeaddrinfo(list);
	return link->fd < 0 ? cannot_connect(why, link->target) : NULL;
}

struct prb_error *prb_link_ended(const struct prb_link *link)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_FAILED, "the server at %.200s is gone", link->target),
		"it ends with the process that it serves, and when the agent is "
		"stopped; the process is not harmed by that");
}

void prb_link_put(struct prb_link *link, enum prb_remote_type type, const void *payload,
		  size_t length)
{
	uint8_t header[PRB_WIRE_HEADER_SIZE];

	prb_wire_put_header(header, (uint32_t)length, (uint16_t)type, 1);
	prb_str_append(&link->out, header, sizeof(header));
	prb_str_append(&link->out, payload, length);
}

struct prb_error *prb_link_send(struct prb_link *link)
{
	while (link->out.length) {
		ssize_t sent = send(link->fd, link->out.data, link->out.length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return NULL;
		/* Its last frames come first, and may say why it closed the connection. */
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
			prb_str_truncate(&link->out, 0);
			return NULL;
		}
		if (sent < 0)
			return prb_error_os(errno, "cannot send to %.200s", link->target);
		prb_str_remove(&link->out, 0, (size_t)sent);
	}
	return NULL;
}

struct prb_error *prb_link_receive(struct prb_link *link)
{
	char chunk[CHUNK];
	ssize_t got = recv(link->fd, chunk, sizeof(chunk), 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (got < 0 && errno != ECONNRESET)
		return prb_error_os(errno, "cannot receive from %.200s", link->target);
	if (got <= 0)
		return prb_link_ended(link);
	prb_str_append(&link->in, chunk, (size_t)got);
	return link->in.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_link_next(struct prb_link *link, struct prb_wire_frame *frame, bool *whole)
{
	int rc;

	prb_str_remove(&link->in, 0, link->taken);
	link->taken = 0;
	rc = prb_wire_next((const uint8_t *)prb_str_text(&link->in), link->in.length,
			   PRB_REMOTE_MAX_REPLY, frame);
	if (rc < 0)
		return prb_error_create(
			PRB_ERROR_BAD_DATA,
			"what listens at %.200s is not a probing server, or is broken",
			link->target);
	*whole = rc;
	if (rc)
		link->taken = PRB_WIRE_HEADER_SIZE + frame->length;
	return NULL;
}

struct prb_error *prb_link_told(const struct prb_link *link, const struct prb_wire_frame *frame)
{
	static const enum prb_error_code codes[] = {
		PRB_ERROR_FAILED,     PRB_ERROR_FAILED,	 PRB_ERROR_USAGE,     PRB_ERROR_UNSUPPORTED,
		PRB_ERROR_PERMISSION, PRB_ERROR_TIMEOUT, PRB_ERROR_NO_PROCESS};
	prb_auto_str struct prb_str text = {};
	uint32_t code = frame->length >= 4 ? prb_wire_get32(frame->payload) : 0;
	const char *hint;

	if (frame->length > 4)
		prb_str_append(&text, frame->payload + 4, frame->length - 4);
	hint = strchr(prb_str_text(&text), '\n');

	struct prb_error *err = prb_error_create(
		codes[code < PRB_ARRAY_SIZE(codes) ? code : 0], "%.200s: %.*s", link->target,
		(int)strcspn(prb_str_text(&text), "\n"), prb_str_text(&text));
	return hint && hint[1] ? prb_error_hint(err, "%s", hint + 1) : err;
}

/** Waits for a frame of that type while we become known to each other. */
static struct prb_error *await(struct prb_link *link, enum prb_remote_type type,
			       struct prb_wire_frame *frame)
{
	double by = prb_clock_seconds() + ANSWER_SECONDS;
	bool whole = false;

	PRB_TRY(prb_link_send(link));
	for (;;) {
		struct pollfd wait = {.fd = link->fd, .events = POLLIN};

		PRB_TRY(prb_link_next(link, frame, &whole));
		if (whole && frame->type == PRB_REMOTE_ERROR)
			return prb_link_told(link, frame);
		if (whole)
			break;
		if (!poll(&wait, 1, milliseconds_to(by)) || prb_clock_seconds() > by)
			return prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
							       "what listens at %.200s does not "
							       "answer like a probing server",
							       link->target),
					      "check the host and the port of the address");
		PRB_TRY(prb_link_receive(link));
	}
	if (frame->type == (uint16_t)type)
		return NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA,
				"what listens at %.200s is not a probing server", link->target);
}

/** Both sides prove that they know the token, without sending it. */
static struct prb_error *introduce(struct prb_link *link, const struct prb_token *token)
{
	struct prb_remote_hello hello = {.lowest = PRB_REMOTE_VERSION,
					 .highest = PRB_REMOTE_VERSION},
				reply;
	uint8_t payload[PRB_REMOTE_HELLO_SIZE], proof[PRB_REMOTE_PROOF_SIZE];
	struct prb_wire_frame frame;

	PRB_TRY(prb_token_nonce(hello.nonce));
	prb_remote_put_hello(payload, &hello);
	prb_link_put(link, PRB_REMOTE_HELLO, payload, sizeof(payload));
	PRB_TRY(await(link, PRB_REMOTE_HELLO_REPLY, &frame));
	if (!prb_remote_get_hello(&frame, PRB_REMOTE_HELLO_REPLY, &reply))
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"what listens at %.200s is not a probing server",
					link->target);
	if (reply.lowest != PRB_REMOTE_VERSION)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the server at %.200s speaks version %u of the protocol, "
					"and this probing %d",
					link->target, reply.lowest, PRB_REMOTE_VERSION);
	prb_token_prove(token, PRB_TOKEN_CLIENT, hello.nonce, reply.nonce, proof);
	prb_link_put(link, PRB_REMOTE_PROOF, proof, sizeof(proof));
	PRB_TRY(await(link, PRB_REMOTE_WELCOME, &frame));
	prb_token_prove(token, PRB_TOKEN_SERVER, hello.nonce, reply.nonce, proof);
	if (frame.length < PRB_REMOTE_WELCOME_SIZE || !prb_token_equal(proof, frame.payload))
		return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
						       "what listens at %.200s does not know the "
						       "token",
						       link->target),
				      "somebody else may listen there in the server's place");
	return NULL;
}

struct prb_error *prb_link_open(struct prb_link *link, const char *target, const char *token_file)
{
	struct prb_token token;

	*link = (struct prb_link){.target = target, .fd = -1, .window = PRB_REMOTE_WINDOW};
	PRB_TRY(prb_token_find(token_file, &token));
	PRB_TRY(connect_link(link));
	return introduce(link, &token);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A client of a server: it says who it is, and passes on what the command reads and prints. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/remote.h"
#include "cli/remote_address.h"
#include "cli/remote_token.h"
#include "cli/term.h"
#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/base/str.h"

static const double CONNECT_SECONDS = 10, ANSWER_SECONDS = 10;
/** A server that does not answer so many Ctrl-C is left. */
enum { PATIENCE = 3, CHUNK = 64 << 10 };

struct link {
	const char *target;
	int fd;
	struct prb_str in, out;
	size_t taken;  /**< of `in`, by the last frame */
	size_t window; /**< bytes of stdin that may be sent */
};

static void link_deinit(struct link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	prb_str_deinit(&link->in);
	prb_str_deinit(&link->out);
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int milliseconds_to(double by)
{
	return (int)(PRB_MAX(by - seconds_now(), 0) * 1000) + 1;
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

static struct prb_error *connect_link(struct link *link)
{
	double by = seconds_now() + CONNECT_SECONDS;
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

static struct prb_error *ended(const struct link *link)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_FAILED, "the server at %.200s is gone", link->target),
		"it ends with the process that it serves, and when the agent is "
		"stopped; the process is not harmed by that");
}

static void put(struct link *link, enum prb_remote_type type, const void *payload, size_t length)
{
	uint8_t header[PRB_WIRE_HEADER_SIZE];

	prb_wire_put_header(header, (uint32_t)length, (uint16_t)type, 1);
	prb_str_append(&link->out, header, sizeof(header));
	prb_str_append(&link->out, payload, length);
}

static struct prb_error *send_out(struct link *link)
{
	while (link->out.length) {
		ssize_t sent = send(link->fd, link->out.data, link->out.length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return NULL;
		/* What it said before it went comes first, and may tell why. */
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
			prb_str_truncate(&link->out, 0);
			return NULL;
		}
		if (sent < 0)
			return prb_error_os(errno, "cannot send to %.200s", link->target);
		memmove(link->out.data, link->out.data + sent, link->out.length - (size_t)sent);
		prb_str_truncate(&link->out, link->out.length - (size_t)sent);
	}
	return NULL;
}

static struct prb_error *receive(struct link *link)
{
	char chunk[CHUNK];
	ssize_t got = recv(link->fd, chunk, sizeof(chunk), 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (got < 0 && errno != ECONNRESET)
		return prb_error_os(errno, "cannot receive from %.200s", link->target);
	if (got <= 0)
		return ended(link);
	prb_str_append(&link->in, chunk, (size_t)got);
	return link->in.failed ? prb_error_nomem() : NULL;
}

/** The next frame if it is there whole, in *whole. It is valid until the next call. */
static struct prb_error *next(struct link *link, struct prb_wire_frame *frame, bool *whole)
{
	int rc;

	if (link->taken) {
		memmove(link->in.data, link->in.data + link->taken, link->in.length - link->taken);
		prb_str_truncate(&link->in, link->in.length - link->taken);
		link->taken = 0;
	}
	rc = prb_wire_next((const uint8_t *)prb_str_text(&link->in), link->in.length,
			   PRB_REMOTE_MAX_REPLY, frame);
	if (rc < 0)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"what listens at %.200s is no probing, or is broken",
					link->target);
	*whole = rc;
	if (rc)
		link->taken = PRB_WIRE_HEADER_SIZE + frame->length;
	return NULL;
}

/** An error that the server tells: its exit code, a message, a line feed and a hint. */
static struct prb_error *told(const struct link *link, const struct prb_wire_frame *frame)
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
static struct prb_error *await(struct link *link, enum prb_remote_type type,
			       struct prb_wire_frame *frame)
{
	double by = seconds_now() + ANSWER_SECONDS;
	bool whole = false;

	PRB_TRY(send_out(link));
	for (;;) {
		struct pollfd wait = {.fd = link->fd, .events = POLLIN};

		PRB_TRY(next(link, frame, &whole));
		if (whole && frame->type == PRB_REMOTE_ERROR)
			return told(link, frame);
		if (whole)
			break;
		if (!poll(&wait, 1, milliseconds_to(by)) || seconds_now() > by)
			return prb_error_create(PRB_ERROR_TIMEOUT,
						"what listens at %.200s does not answer as a "
						"probing",
						link->target);
		PRB_TRY(receive(link));
	}
	if (frame->type == (uint16_t)type)
		return NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA, "what listens at %.200s is no probing",
				link->target);
}

/** Both sides prove that they know the token; neither tells it. */
static struct prb_error *introduce(struct link *link, const struct prb_token *token)
{
	struct prb_remote_hello hello = {.lowest = PRB_REMOTE_VERSION,
					 .highest = PRB_REMOTE_VERSION},
				reply;
	uint8_t payload[PRB_REMOTE_HELLO_SIZE], proof[PRB_REMOTE_PROOF_SIZE];
	struct prb_wire_frame frame;

	PRB_TRY(prb_token_nonce(hello.nonce));
	prb_remote_put_hello(payload, &hello);
	put(link, PRB_REMOTE_HELLO, payload, sizeof(payload));
	PRB_TRY(await(link, PRB_REMOTE_HELLO_REPLY, &frame));
	if (!prb_remote_get_hello(&frame, PRB_REMOTE_HELLO_REPLY, &reply))
		return prb_error_create(PRB_ERROR_BAD_DATA, "what listens at %.200s is no probing",
					link->target);
	if (reply.lowest != PRB_REMOTE_VERSION)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the server at %.200s speaks version %u of the protocol, "
					"and this probing %d",
					link->target, reply.lowest, PRB_REMOTE_VERSION);
	prb_token_prove(token, PRB_TOKEN_CLIENT, hello.nonce, reply.nonce, proof);
	put(link, PRB_REMOTE_PROOF, proof, sizeof(proof));
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

static struct prb_error *ask(struct link *link, const struct prb_remote_job *job)
{
	struct prb_remote_run run = {.count = job->words.list.count};
	prb_auto_str struct prb_str payload = {};
	uint8_t fixed[PRB_REMOTE_RUN_SIZE];
	size_t columns, rows;
	char *const *word;

	if (job->in >= 0)
		run.flags |= PRB_REMOTE_INPUT;
	if (job->out == STDOUT_FILENO && prb_term_size(stdout, &columns, &rows)) {
		run.flags |= PRB_REMOTE_TERMINAL;
		run.flags |= prb_term_colour(stdout) ? PRB_REMOTE_COLOUR : 0;
		run.columns = (uint32_t)columns;
		run.rows = (uint32_t)rows;
	}
	prb_remote_put_run(fixed, &run);
	prb_str_append(&payload, fixed, sizeof(fixed));
	prb_vec_each (word, &job->words.list)
		prb_str_append(&payload, *word, strlen(*word) + 1);
	if (payload.failed)
		return prb_error_nomem();
	if (payload.length > PRB_REMOTE_MAX_REQUEST || run.count > PRB_REMOTE_MAX_WORDS)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "the command is too long to be sent"),
			"give it on stdin, with '-'");
	put(link, PRB_REMOTE_RUN, payload.data, payload.length);
	return send_out(link);
}

/** Writes a part of the output, whole. */
static struct prb_error *print(int fd, const struct prb_wire_frame *frame)
{
	const uint8_t *at = frame->payload;
	size_t left = frame->length;

	while (left) {
		ssize_t written = write(fd, at, left);

		if (written < 0 && errno == EAGAIN) {
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			poll(&wait, 1, -1);
			continue;
		}
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return prb_error_os(errno, "cannot write the output");
		at += written;
		left -= (size_t)written;
	}
	return NULL;
}

/** Handles all frames that are there. */
static struct prb_error *take_all(struct link *link, const struct prb_remote_job *job,
				  struct prb_remote_end *ret, bool *done)
{
	struct prb_wire_frame frame;
	bool whole = false;

	for (;;) {
		PRB_TRY(next(link, &frame, &whole));
		if (!whole)
			return NULL;
		switch (frame.type) {
		case PRB_REMOTE_STDOUT:
			PRB_TRY(print(job->out, &frame));
			break;
		case PRB_REMOTE_STDERR:
			PRB_TRY(print(job->err, &frame));
			break;
		case PRB_REMOTE_ERROR:
			return told(link, &frame);
		case PRB_REMOTE_TAKEN:
			if (frame.length >= 4)
				link->window += prb_wire_get32(frame.payload);
			break;
		case PRB_REMOTE_DONE:
			if (frame.length < PRB_REMOTE_DONE_SIZE)
				return ended(link);
			ret->code = (int)prb_wire_get32(frame.payload);
			ret->signal = (int)prb_wire_get32(frame.payload + 4);
			*done = true;
			return NULL;
		default: /* of a later version */
			break;
		}
	}
}

/** Reads what the command is to read, and queues it; *in is -1 after its end. */
static struct prb_error *feed(struct link *link, int *in)
{
	char chunk[CHUNK / 2];
	ssize_t got = read(*in, chunk, PRB_MIN(sizeof(chunk), link->window));

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return NULL;
	if (got < 0)
		return prb_error_os(errno, "cannot read stdin");
	put(link, PRB_REMOTE_STDIN, chunk, (size_t)got);
	link->window -= (size_t)got;
	if (!got)
		*in = -1;
	return send_out(link);
}

/** Hands a Ctrl-C on. The command ends by it, or not; we wait, unless the user insists. */
static struct prb_error *hand_on(struct link *link, unsigned *handed)
{
	unsigned count = prb_interrupt_count();

	if (count > PATIENCE)
		return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
	while (*handed < count) {
		put(link, PRB_REMOTE_INTERRUPT, NULL, 0);
		++*handed;
	}
	return send_out(link);
}

static struct prb_error *follow(struct link *link, const struct prb_remote_job *job,
				struct prb_remote_end *ret)
{
	unsigned handed = 0;
	int in = job->in;
	bool done = false;
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	sigdelset(&mask, SIGINT);
	while (!done) {
		struct pollfd waits[] = {
			{.fd = link->fd,
			 .events = (short)(POLLIN | (link->out.length ? POLLOUT : 0))},
			{.fd = link->out.length || !link->window ? -1 : in, .events = POLLIN}};
		int rc = ppoll(waits, 2, NULL, &mask);

		if (rc < 0 && errno != EINTR)
			return prb_error_os(errno, "cannot wait for %.200s", link->target);
		PRB_TRY(hand_on(link, &handed));
		if (rc > 0 && waits[1].revents)
			PRB_TRY(feed(link, &in));
		PRB_TRY(send_out(link));
		if (rc > 0 && (waits[0].revents & (POLLIN | POLLHUP | POLLERR)))
			PRB_TRY(receive(link));
		PRB_TRY(take_all(link, job, ret, &done));
	}
	return NULL;
}

struct prb_error *prb_remote_run(const struct prb_remote_job *job, struct prb_remote_end *ret)
{
	__attribute__((cleanup(link_deinit))) struct link link = {
		.target = job->target, .fd = -1, .window = PRB_REMOTE_WINDOW};
	struct prb_token token;

	PRB_TRY(prb_token_find(job->token_file, &token));
	PRB_TRY(connect_link(&link));
	PRB_TRY(introduce(&link, &token));
	prb_interrupt_catch(NULL);
	prb_interrupt_hold(true);
	PRB_TRY(ask(&link, job));

	struct prb_error *err = follow(&link, job, ret);
	prb_interrupt_hold(false);
	prb_interrupt_release();
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loop of a server: one thread waits for clients, for what they send, and for their commands.
 */
#include "remote/serve/serve.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote/serve/serve_private.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"

/** Seconds that a client has to prove that it knows the token. */
static const double STRANGER_SECONDS = 10;
/** A client that does not read for so long is dropped; its terminal may show a pager meanwhile. */
static const double READ_SECONDS = 600;
/** Seconds that running commands have to end when the service ends. */
static const double DRAIN_SECONDS = 2;

enum { PER_CLIENT = 4, STEP_MS = 20, REST_MS = 1000, CHUNK = PRB_REMOTE_MAX_REPLY };

/** Polled descriptors: a client's follow each other, with -1 for unused ones. */
struct waits {
	struct pollfd list[1 + PRB_SERVE_MAX_ENDS + PER_CLIENT * PRB_SERVE_MAX_SLOTS];
	size_t count;
};

static void expect(struct waits *waits, int fd, short events)
{
	waits->list[waits->count++] = (struct pollfd){.fd = fd, .events = events};
}

/** Descriptors of a client in the order in which attend() looks at them. */
static void expect_client(struct waits *waits, const struct prb_serve_client *client)
{
	const struct prb_serve_child *child = &client->child;
	bool room = client->out.length < PRB_SERVE_QUEUE;
	bool reads = client->in.length < PRB_WIRE_HEADER_SIZE + PRB_REMOTE_MAX_REQUEST && room;

	expect(waits, client->fd,
	       (short)((reads ? POLLIN : 0) | (client->out.length ? POLLOUT : 0) | POLLRDHUP));
	expect(waits, room ? child->out : -1, POLLIN);
	expect(waits, room ? child->err : -1, POLLIN);
	expect(waits, child->input.length ? child->in : -1, POLLOUT);
}

/** The oldest client that was not let in makes room. */
static void drop_oldest_stranger(struct prb_server *server)
{
	struct prb_serve_client *oldest = NULL;
	size_t strangers = 0;

	for (size_t i = 0; i < server->count; i++) {
		struct prb_serve_client *client = server->clients[i];

		if (client->was_in || client->state == PRB_SERVE_GONE)
			continue;
		strangers++;
		if (!oldest || client->since < oldest->since)
			oldest = client;
	}
	if (strangers >= PRB_SERVE_MAX_STRANGERS)
		prb_serve_client_drop(server, oldest);
}

static void accept_client(struct prb_server *server)
{
	struct sockaddr_storage address = {};
	socklen_t length = sizeof(address);
	prb_auto_close int fd = -1;
	struct prb_serve_client *client;
	int yes = 1;

	drop_oldest_stranger(server);
	fd = accept4(server->how->listener->fd, (struct sockaddr *)&address, &length,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	client = calloc(1, sizeof(*client));
	if (!client)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	*client = (struct prb_serve_client){
		.fd = prb_steal_fd(&fd),
		.address = address,
		.since = server->now,
		.by = server->now + STRANGER_SECONDS,
		.child = PRB_SERVE_NO_CHILD,
	};
	server->clients[server->count++] = client;
}

/** Sends what waits, as far as the client takes it. */
static void send_out(struct prb_server *server, struct prb_serve_client *client)
{
	while (client->out.length && client->fd >= 0) {
		ssize_t sent = send(client->fd, client->out.data, client->out.length,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent <= 0) {
			prb_serve_client_drop(server, client);
			return;
		}
		prb_str_remove(&client->out, 0, (size_t)sent);
		if (client->state == PRB_SERVE_LET_IN)
			client->by = server->now + READ_SECONDS;
	}
}

/** The first bytes are a method of HTTP, or its beginning. */
static bool speaks_http(const struct prb_server *server, const struct prb_serve_client *client)
{
	static const char *const METHODS[] = {"GET /", "POST /", "HEAD /", "DELETE /", "OPTIONS "};
	char first[8];
	ssize_t got;

	if (!server->how->http || client->state != PRB_SERVE_EXPECTS_HELLO || client->in.length)
		return false;
	got = recv(client->fd, first, sizeof(first), MSG_DONTWAIT | MSG_PEEK);
	for (size_t i = 0; got > 0 && i < PRB_ARRAY_SIZE(METHODS); i++)
		if (!memcmp(first, METHODS[i], PRB_MIN((size_t)got, strlen(METHODS[i]))))
			return true;
	return false;
}

/** Hands the connection to the HTTP server; without one, answers so. */
static void hand_over(struct prb_server *server, struct prb_serve_client *client)
{
	static const char NOBODY[] =
		"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\n"
		"Connection: close\r\n\r\nprobing needs libmicrohttpd to answer HTTP; on "
		"Debian and Ubuntu: apt-get install libmicrohttpd12\n";

	if (!prb_serve_hand_over(server->how->http(server->how->context), client->fd) &&
	    send(client->fd, NOBODY, sizeof(NOBODY) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		shutdown(client->fd, SHUT_WR);
	prb_serve_client_drop(server, client);
}

/** Receives available bytes. */
static void receive(struct prb_server *server, struct prb_serve_client *client)
{
	char chunk[CHUNK];

	if (speaks_http(server, client)) {
		hand_over(server, client);
		return;
	}
	ssize_t got = recv(client->fd, chunk, sizeof(chunk), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		prb_serve_client_drop(server, client);
		return;
	}
	/*
	 * Input of a refused client is dropped, but must be read: closing with unread input would
	 * reset the connection.
	 */
	if (client->state == PRB_SERVE_REFUSED)
		return;
	prb_str_append(&client->in, chunk, (size_t)got);
}

/** Passes on what the command prints. */
static void pass_on(struct prb_serve_client *client, int *fd, enum prb_remote_type type)
{
	char chunk[CHUNK];
	ssize_t got = read(*fd, chunk, sizeof(chunk));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		close(*fd);
		*fd = -1;
		return;
	}
	prb_serve_client_put(client, type, chunk, (size_t)got);
}

/** The command has closed its output: does it exist still, and how did it end? */
static void finish(struct prb_server *server, struct prb_serve_client *client)
{
	uint8_t done[PRB_REMOTE_DONE_SIZE];
	int status;

	if (!prb_serve_child_reap(&client->child, &status) || client->state == PRB_SERVE_GONE)
		return;
	prb_wire_put32(done, WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 1);
	prb_wire_put32(done + 4, WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0);
	prb_serve_client_put(client, PRB_REMOTE_DONE, done, sizeof(done));
	client->by = server->now + READ_SECONDS;
}

/** Looks at what poll() said of a client's four descriptors. */
static void attend(struct prb_server *server, struct prb_serve_client *client,
		   const struct pollfd *polled)
{
	struct prb_serve_child *child = &client->child;

	if (polled[1].fd >= 0 && polled[1].revents)
		pass_on(client, &child->out, PRB_REMOTE_STDOUT);
	if (polled[2].fd >= 0 && polled[2].revents)
		pass_on(client, &child->err, PRB_REMOTE_STDERR);
	if (polled[3].fd >= 0 && polled[3].revents)
		prb_serve_child_feed(child);
	if (client->fd >= 0 && (polled[0].revents & POLLIN))
		receive(server, client);
	else if (client->fd >= 0 && (polled[0].revents & (POLLRDHUP | POLLHUP | POLLERR)))
		prb_serve_client_drop(server, client);
}

/** Reports to the client how much more it may send, in steps rather than for each byte. */
static void ask_for_more(struct prb_serve_client *client)
{
	struct prb_serve_child *child = &client->child;
	uint8_t count[4];

	if (!child->taken || (child->input.length && child->taken < PRB_REMOTE_WINDOW / 4))
		return;
	prb_wire_put32(count, (uint32_t)child->taken);
	child->taken = 0;
	prb_serve_client_put(client, PRB_REMOTE_TAKEN, count, sizeof(count));
}

/** Does what a client's state asks for, whether poll() said anything or not. */
static void advance(struct prb_server *server, struct prb_serve_client *client)
{
	struct prb_serve_child *child = &client->child;
	bool failed = client->in.failed || client->out.failed || child->input.failed;

	prb_serve_client_take(server, client);
	ask_for_more(client);
	if (child->pid && (client->state >= PRB_SERVE_REFUSED || failed))
		prb_serve_child_kill(child, server->now);
	if (child->pid && child->out < 0 && child->err < 0)
		finish(server, client);
	send_out(server, client);
	if (client->state == PRB_SERVE_REFUSED && !client->out.length && !client->shut) {
		client->shut = true;
		shutdown(client->fd, SHUT_WR);
	}
	/* A command that says nothing may take its time. */
	bool waits = child->pid && !client->out.length;

	if (failed || (server->now > client->by && !waits))
		prb_serve_client_drop(server, client);
}

static void client_destroy(struct prb_serve_client *client)
{
	prb_str_deinit(&client->in);
	prb_str_deinit(&client->out);
	prb_str_deinit(&client->child.input);
	free(client);
}

/** Forgets clients that are gone and whose command has ended. */
static void sweep(struct prb_server *server)
{
	size_t kept = 0;

	for (size_t i = 0; i < server->count; i++) {
		struct prb_serve_client *client = server->clients[i];

		if (client->state == PRB_SERVE_GONE && !client->child.pid)
			client_destroy(client);
		else
			server->clients[kept++] = client;
	}
	server->count = kept;
}

/** The service is to end: accepts no client any more, and drops idle ones. */
static void begin_drain(struct prb_server *server)
{
	if (!server->drain)
		server->drain = server->now + DRAIN_SECONDS;
	for (size_t i = 0; i < server->count; i++) {
		struct prb_serve_client *client = server->clients[i];
		bool busy = client->child.pid || client->out.length;

		if (client->state != PRB_SERVE_GONE && (!busy || server->now > server->drain))
			prb_serve_client_drop(server, client);
	}
}

static bool is_to_end(struct prb_server *server, const struct pollfd *polled)
{
	const struct prb_serve *how = server->how;

	for (size_t i = 0; i < how->end_count; i++)
		if (polled[i].fd >= 0 && polled[i].revents &&
		    (!how->ended || how->ended(how->context, i)))
			return true;
	return how->once && server->served && !server->let_in;
}

/** Some milliseconds while there is work that poll() does not report. */
static int patience(const struct prb_server *server)
{
	for (size_t i = 0; i < server->count; i++) {
		const struct prb_serve_client *client = server->clients[i];

		if (client->child.pid && client->child.out < 0 && client->child.err < 0)
			return STEP_MS;
	}
	return server->drain ? STEP_MS : server->count ? REST_MS : -1;
}

/** One round. */
static struct prb_error *serve_once(struct prb_server *server, struct waits *waits)
{
	const struct prb_serve *how = server->how;
	size_t known = server->count;

	waits->count = 0;
	bool open = !server->drain && server->count < PRB_SERVE_MAX_SLOTS;

	expect(waits, open ? how->listener->fd : -1, POLLIN);
	for (size_t i = 0; i < how->end_count; i++)
		expect(waits, how->ends[i] > 0 && !server->drain ? how->ends[i] : -1, POLLIN);
	for (size_t i = 0; i < server->count; i++)
		expect_client(waits, server->clients[i]);
	if (poll(waits->list, waits->count, patience(server)) < 0 && errno != EINTR)
		return prb_error_os(errno, "cannot wait for clients");
	server->now = prb_clock_seconds();
	for (size_t i = 0; i < known; i++)
		attend(server, server->clients[i],
		       &waits->list[1 + how->end_count + PER_CLIENT * i]);
	for (size_t i = 0; i < known; i++)
		advance(server, server->clients[i]);
	if (waits->list[0].revents)
		accept_client(server);
	if (server->drain || is_to_end(server, waits->list + 1))
		begin_drain(server);
	sweep(server);
	return NULL;
}

/** Ends running commands, and waits for them. */
static void end_all(struct prb_server *server)
{
	for (size_t i = 0; i < server->count; i++) {
		struct prb_serve_client *client = server->clients[i];

		prb_serve_client_drop(server, client);
		if (client->child.pid) {
			kill(client->child.pid, SIGKILL);
			waitpid(client->child.pid, NULL, 0);
		}
		close(client->child.in);
		close(client->child.out);
		close(client->child.err);
		client_destroy(client);
	}
}

struct prb_error *prb_serve(const struct prb_serve *how)
{
	prb_auto_free struct prb_server *server = calloc(1, sizeof(*server));
	prb_auto_free struct waits *waits = calloc(1, sizeof(*waits));
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	struct prb_error *err = NULL;

	if (!server || !waits)
		return prb_error_nomem();
	if (how->end_count > PRB_SERVE_MAX_ENDS)
		return prb_error_create(PRB_ERROR_FAILED, "at most %d things end a service",
					PRB_SERVE_MAX_ENDS);
	server->how = how;
	server->now = prb_clock_seconds();
	sigaction(SIGPIPE, &ignore, &before);
	while (!err && !(server->drain && !server->count))
		err = serve_once(server, waits);
	end_all(server);
	sigaction(SIGPIPE, &before, NULL);
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One client of a server: its requests and the replies. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/exit.h"
#include "remote/serve/serve_private.h"
#include "remote/serve/user.h"
#include "remote/serve/words.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/process.h"

/** A refused client has so long to read why; an idle client may stay so long. */
static const double REFUSED_SECONDS = 2, IDLE_SECONDS = 60;

void prb_serve_client_put(struct prb_serve_client *client, enum prb_remote_type type,
			  const void *payload, size_t length)
{
	uint8_t header[PRB_WIRE_HEADER_SIZE];

	prb_wire_put_header(header, (uint32_t)length, (uint16_t)type, client->request);
	prb_str_append(&client->out, header, sizeof(header));
	prb_str_append(&client->out, payload, length);
}

void prb_serve_client_tell(struct prb_serve_client *client, struct prb_error *err)
{
	prb_auto_str struct prb_str text = {};
	uint8_t code[4];

	prb_wire_put32(code, (uint32_t)prb_exit_code(err));
	prb_str_append(&text, code, sizeof(code));
	prb_str_printf(&text, "%.4000s\n%.4000s", err->message, err->hint ? err->hint : "");
	prb_serve_client_put(client, PRB_REMOTE_ERROR, text.data, text.length);
	prb_error_destroy(err);
}

/** It does not count as let in any more. */
static void leave(struct prb_server *server, struct prb_serve_client *client)
{
	if (client->state != PRB_SERVE_LET_IN)
		return;
	server->let_in--;
	if (!server->let_in && server->how->last_left)
		server->how->last_left(server->how->context);
}

void prb_serve_client_refuse(struct prb_server *server, struct prb_serve_client *client,
			     struct prb_error *err)
{
	prb_serve_client_tell(client, err);
	leave(server, client);
	client->state = PRB_SERVE_REFUSED;
	client->by = server->now + REFUSED_SECONDS;
	prb_str_truncate(&client->in, 0);
}

void prb_serve_client_drop(struct prb_server *server, struct prb_serve_client *client)
{
	leave(server, client);
	client->state = PRB_SERVE_GONE;
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

static void take_hello(struct prb_server *server, struct prb_serve_client *client,
		       const struct prb_wire_frame *frame)
{
	struct prb_remote_hello reply = {.lowest = PRB_REMOTE_VERSION,
					 .highest = PRB_REMOTE_VERSION};
	uint8_t payload[PRB_REMOTE_HELLO_SIZE];
	struct prb_error *err;

	if (!prb_remote_get_hello(frame, PRB_REMOTE_HELLO, &client->hello)) {
		prb_serve_client_refuse(
			server, client,
			prb_error_create(PRB_ERROR_FAILED, "this serves clients of 'probing -t'"));
		return;
	}
	if (client->hello.lowest > PRB_REMOTE_VERSION ||
	    client->hello.highest < PRB_REMOTE_VERSION) {
		err = prb_error_create(PRB_ERROR_UNSUPPORTED,
				       "the server speaks version %d of the protocol, and this "
				       "probing %u to %u",
				       PRB_REMOTE_VERSION, client->hello.lowest,
				       client->hello.highest);
		prb_serve_client_refuse(server, client,
					prb_error_hint(err, "use the same version at both ends; "
							    "the server's is " PRB_VERSION));
		return;
	}
	err = prb_token_nonce(client->nonce);
	if (err) {
		prb_serve_client_refuse(server, client, err);
		return;
	}
	memcpy(reply.nonce, client->nonce, sizeof(reply.nonce));
	prb_remote_put_hello(payload, &reply);
	prb_serve_client_put(client, PRB_REMOTE_HELLO_REPLY, payload, sizeof(payload));
	client->state = PRB_SERVE_EXPECTS_PROOF;
}

/** The subject of the delay after wrong tokens: an address, or a user of this machine. */
static struct sockaddr_storage who(const struct prb_serve_client *client)
{
	struct sockaddr_storage who = client->address;
	uid_t user;

	if (prb_serve_user(client->fd, &client->address, &user))
		prb_limit_of_user(&who, user);
	return who;
}

static struct prb_error *check_proof(struct prb_server *server, struct prb_serve_client *client,
				     const struct prb_wire_frame *frame)
{
	const struct sockaddr_storage from = who(client);
	double wait = prb_limit_wait(&server->limit, &from, server->now);
	uint8_t expected[PRB_REMOTE_PROOF_SIZE];

	if (frame->type != PRB_REMOTE_PROOF || frame->length != PRB_REMOTE_PROOF_SIZE)
		return prb_error_create(
			PRB_ERROR_FAILED,
			"the client violates the protocol: no proof follows its hello");
	if (wait > 0)
		return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
						       "too many wrong tokens came from there"),
				      "try again in %.0f s", wait + 0.5);
	prb_token_prove(server->how->token, PRB_TOKEN_CLIENT, client->hello.nonce, client->nonce,
			expected);
	if (!prb_token_equal(expected, frame->payload)) {
		prb_limit_fail(&server->limit, &from, server->now);
		return prb_error_hint(
			prb_error_create(PRB_ERROR_PERMISSION, "the token is wrong"),
			"the right one was printed when the process was served, or is "
			"in the file that --token-file named there");
	}
	prb_limit_pass(&server->limit, &from);
	if (server->let_in >= PRB_SERVE_MAX_CLIENTS)
		return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
						       "the server has %d clients already",
						       PRB_SERVE_MAX_CLIENTS),
				      "try again when one has left");
	return NULL;
}

static void take_proof(struct prb_server *server, struct prb_serve_client *client,
		       const struct prb_wire_frame *frame)
{
	struct prb_error *err = check_proof(server, client, frame);
	uint8_t payload[PRB_REMOTE_WELCOME_SIZE];
	int yes = 1, idle = 30, interval = 10, count = 3;

	if (err) {
		prb_serve_client_refuse(server, client, err);
		return;
	}
	setsockopt(client->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	setsockopt(client->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(client->fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(client->fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	prb_token_prove(server->how->token, PRB_TOKEN_SERVER, client->hello.nonce, client->nonce,
			payload);
	prb_wire_put32(payload + PRB_REMOTE_PROOF_SIZE, (uint32_t)server->how->pid);
	prb_serve_client_put(client, PRB_REMOTE_WELCOME, payload, sizeof(payload));
	client->state = PRB_SERVE_LET_IN;
	client->was_in = true;
	client->by = server->now + IDLE_SECONDS;
	server->let_in++;
	server->served = true;
}

/** Sends an answer of the caller. */
static void put_answer(struct prb_serve_client *client, const struct prb_serve_answer *answer)
{
	const struct prb_str *const texts[] = {&answer->out, &answer->err};
	uint8_t done[PRB_REMOTE_DONE_SIZE];

	for (size_t i = 0; i < 2; i++)
		for (size_t at = 0; at < texts[i]->length; at += PRB_REMOTE_MAX_REPLY)
			prb_serve_client_put(
				client, i ? PRB_REMOTE_STDERR : PRB_REMOTE_STDOUT,
				texts[i]->data + at,
				PRB_MIN(texts[i]->length - at, (size_t)PRB_REMOTE_MAX_REPLY));
	prb_wire_put32(done, (uint32_t)answer->code);
	prb_wire_put32(done + 4, 0);
	prb_serve_client_put(client, PRB_REMOTE_DONE, done, sizeof(done));
}

static bool has_option(const struct prb_words *words, const char *option)
{
	const char *word;

	for (size_t i = 0; i < words->list.count; i++) {
		word = words->list.items[i];
		if (!word || !strcmp(word, "--"))
			return false;
		if (!strcmp(word, option))
			return true;
	}
	return false;
}

/** The token is meant to be as good as the target's user: it gives no access to files. */
static struct prb_error *check_source(pid_t pid, const struct prb_words *words)
{
	struct prb_process process = {};

	if (!has_option(words, "--source"))
		return NULL;
	PRB_TRY(prb_process_describe(pid, &process));
	uid_t uid = process.uid;
	prb_process_deinit(&process);
	if (uid == geteuid())
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
					       "--source is not for clients: process %d runs as "
					       "user %u, its server as user %u",
					       (int)pid, uid, geteuid()),
			      "let user %u start the server: 'probing %d inject --listen'", uid,
			      (int)pid);
}

static struct prb_error *run(struct prb_server *server, struct prb_serve_client *client,
			     const struct prb_wire_frame *frame)
{
	const struct prb_serve *how = server->how;
	struct prb_serve_answer answer = {};
	prb_auto_words struct prb_words words = {};
	struct prb_remote_run asked;

	client->request = frame->request;
	if (client->child.pid)
		return prb_error_create(PRB_ERROR_FAILED, "the command before has not ended");
	if (!prb_remote_get_run(frame, &asked))
		return prb_error_create(PRB_ERROR_FAILED,
					"the client violates the protocol: its command has no end");
	if (how->command && how->command(how->context, asked.words, asked.count, &answer)) {
		put_answer(client, &answer);
		prb_str_deinit(&answer.out);
		prb_str_deinit(&answer.err);
		return NULL;
	}
	PRB_TRY(prb_serve_words(asked.words, asked.count, how->target, &words));
	PRB_TRY(check_source(how->pid, &words));
	return prb_serve_child_start(&client->child, &words, &asked, &client->address);
}

/** More for the command to read. It is queued, so there is a bound for it. */
static void take_input(struct prb_server *server, struct prb_serve_client *client,
		       const struct prb_wire_frame *frame)
{
	struct prb_serve_child *child = &client->child;

	if (!child->pid || child->input_ended)
		return;
	if (frame->length > PRB_REMOTE_WINDOW - PRB_MIN(child->input.length + child->taken,
							(size_t)PRB_REMOTE_WINDOW)) {
		prb_serve_client_refuse(
			server, client,
			prb_error_create(
				PRB_ERROR_FAILED,
				"the client violates the protocol: it sends more than is taken"));
		return;
	}
	prb_str_append(&child->input, frame->payload, frame->length);
	child->input_ended = !frame->length;
	prb_serve_child_feed(child);
}

static void take_request(struct prb_server *server, struct prb_serve_client *client,
			 const struct prb_wire_frame *frame)
{
	struct prb_error *err = NULL;

	client->by = server->now + IDLE_SECONDS;
	switch (frame->type) {
	case PRB_REMOTE_RUN:
		err = run(server, client, frame);
		break;
	case PRB_REMOTE_STDIN:
		take_input(server, client, frame);
		break;
	case PRB_REMOTE_INTERRUPT:
		if (client->child.pid && !client->child.killed)
			kill(client->child.pid, SIGINT);
		break;
	default:
		err = prb_error_create(PRB_ERROR_UNSUPPORTED,
				       "the server knows no request of type %u", frame->type);
	}
	if (err)
		prb_serve_client_tell(client, err);
}

static void take(struct prb_server *server, struct prb_serve_client *client,
		 const struct prb_wire_frame *frame)
{
	if (client->state == PRB_SERVE_EXPECTS_HELLO)
		take_hello(server, client, frame);
	else if (client->state == PRB_SERVE_EXPECTS_PROOF)
		take_proof(server, client, frame);
	else
		take_request(server, client, frame);
}

void prb_serve_client_take(struct prb_server *server, struct prb_serve_client *client)
{
	while (client->state <= PRB_SERVE_LET_IN && client->in.length &&
	       client->out.length < PRB_SERVE_QUEUE) {
		uint32_t max = client->state == PRB_SERVE_LET_IN ? PRB_REMOTE_MAX_REQUEST
								 : PRB_REMOTE_MAX_STRANGER;
		struct prb_wire_frame frame;
		int whole = prb_wire_next((const uint8_t *)client->in.data, client->in.length, max,
					  &frame);

		if (!whole)
			return;
		if (whole < 0) {
			prb_serve_client_refuse(
				server, client,
				prb_error_create(PRB_ERROR_FAILED,
						 "the client violates the protocol: a "
						 "frame of %u bytes",
						 frame.length));
			return;
		}
		take(server, client, &frame);
		if (client->state <= PRB_SERVE_LET_IN)
			prb_str_remove(&client->in, 0, PRB_WIRE_HEADER_SIZE + frame.length);
	}
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A command at a server: what it reads and prints is passed on. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/interrupt.h"
#include "remote/remote.h"
#include "remote/link.h"
#include "command/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"

/** A server that does not answer so many Ctrl-C is left. */
enum { PATIENCE = 3, CHUNK = 32 << 10 };

/** Where a part of what the command prints goes. */
struct stream {
	int fd;
	struct prb_str held; /**< what may be the beginning of a mark */
	bool marked;	     /**< the answer has ended */
};

struct prb_remote_talk {
	struct prb_link link;
	const char *mark;    /**< ends an answer; NULL: only the command's end does */
	int in;		     /**< what it reads is read there; -1: from nowhere, or no more */
	struct prb_str text; /**< what it is to read, of which `sent` bytes are sent */
	size_t sent;
	struct stream out, err;
	unsigned handed; /**< Ctrl-C that were handed on */
	bool done;
	struct prb_remote_end end;
};

static void talk_deinit(struct prb_remote_talk *talk)
{
	prb_link_close(&talk->link);
	prb_str_deinit(&talk->text);
	prb_str_deinit(&talk->out.held);
	prb_str_deinit(&talk->err.held);
}

static struct prb_error *ask(struct prb_link *link, const struct prb_remote_job *job)
{
	struct prb_remote_run run = {.count = job->words.list.count};
	prb_auto_str struct prb_str payload = {};
	uint8_t fixed[PRB_REMOTE_RUN_SIZE];
	size_t columns, rows;
	char *const *word;

	if (job->in >= 0 || job->mark)
		run.flags |= PRB_REMOTE_INPUT;
	if (job->out == STDOUT_FILENO && prb_term_size(stdout, &columns, &rows)) {
		run.flags |= PRB_REMOTE_TERMINAL;
		run.flags |= prb_term_colour(stdout) ? PRB_REMOTE_COLOUR : 0;
		run.flags |= prb_term_is(stderr) ? PRB_REMOTE_TERMINALS : 0;
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
	prb_link_put(link, PRB_REMOTE_RUN, payload.data, payload.length);
	return prb_link_send(link);
}

/** Writes a part of the output, whole. */
static struct prb_error *print(int fd, const void *data, size_t length)
{
	const char *at = data;

	while (length) {
		ssize_t written = write(fd, at, length);

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
		length -= (size_t)written;
	}
	return NULL;
}

/** Prints up to the mark. A possible beginning of the mark is held back. */
static struct prb_error *print_to_mark(struct stream *stream, const char *mark,
				       const struct prb_wire_frame *frame)
{
	struct prb_str *held = &stream->held;
	size_t length = strlen(mark), keep = 0;
	char *at;

	prb_str_append(held, frame->payload, frame->length);
	if (held->failed)
		return prb_error_nomem();
	if (!held->length)
		return NULL;
	at = memmem(held->data, held->length, mark, length);
	if (at) {
		struct prb_error *err = print(stream->fd, held->data, (size_t)(at - held->data));

		prb_str_truncate(held, 0);
		stream->marked = true;
		return err;
	}
	for (keep = PRB_MIN(length - 1, held->length); keep; keep--)
		if (!memcmp(held->data + held->length - keep, mark, keep))
			break;
	PRB_TRY(print(stream->fd, held->data, held->length - keep));
	prb_str_remove(held, 0, held->length - keep);
	return NULL;
}

static struct prb_error *take_output(struct prb_remote_talk *talk, struct stream *stream,
				     const struct prb_wire_frame *frame)
{
	return talk->mark ? print_to_mark(stream, talk->mark, frame)
			  : print(stream->fd, frame->payload, frame->length);
}

static struct prb_error *take_done(struct prb_remote_talk *talk, const struct prb_wire_frame *frame)
{
	if (frame->length < PRB_REMOTE_DONE_SIZE)
		return prb_link_ended(&talk->link);
	talk->end.code = (int)prb_wire_get32(frame->payload);
	talk->end.signal = (int)prb_wire_get32(frame->payload + 4);
	talk->done = true;
	/* No mark came of what looked like one. */
	PRB_TRY(print(talk->out.fd, talk->out.held.data, talk->out.held.length));
	return print(talk->err.fd, talk->err.held.data, talk->err.held.length);
}

/** Handles all frames that are there. */
static struct prb_error *take_all(struct prb_remote_talk *talk)
{
	struct prb_wire_frame frame;
	bool whole = false;

	while (!talk->done) {
		PRB_TRY(prb_link_next(&talk->link, &frame, &whole));
		if (!whole)
			return NULL;
		switch (frame.type) {
		case PRB_REMOTE_STDOUT:
			PRB_TRY(take_output(talk, &talk->out, &frame));
			break;
		case PRB_REMOTE_STDERR:
			PRB_TRY(take_output(talk, &talk->err, &frame));
			break;
		case PRB_REMOTE_ERROR:
			return prb_link_told(&talk->link, &frame);
		case PRB_REMOTE_TAKEN:
			if (frame.length >= 4)
				talk->link.window += prb_wire_get32(frame.payload);
			break;
		case PRB_REMOTE_DONE:
			PRB_TRY(take_done(talk, &frame));
			break;
		default: /* of a later version */
			break;
		}
	}
	return NULL;
}

/** Reads what the command is to read, and queues it; `in` is -1 after its end. */
static struct prb_error *feed_from_in(struct prb_remote_talk *talk)
{
	char chunk[CHUNK];
	ssize_t got = read(talk->in, chunk, PRB_MIN(sizeof(chunk), talk->link.window));

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return NULL;
	if (got < 0)
		return prb_error_os(errno, "cannot read stdin");
	prb_link_put(&talk->link, PRB_REMOTE_STDIN, chunk, (size_t)got);
	talk->link.window -= (size_t)got;
	if (!got)
		talk->in = -1;
	return prb_link_send(&talk->link);
}

/** Queues of the text what may be sent. */
static void feed_text(struct prb_remote_talk *talk)
{
	size_t length = PRB_MIN(talk->text.length - talk->sent, talk->link.window);

	for (size_t part; length; length -= part) {
		part = PRB_MIN(length, (size_t)CHUNK);
		prb_link_put(&talk->link, PRB_REMOTE_STDIN, talk->text.data + talk->sent, part);
		talk->sent += part;
		talk->link.window -= part;
	}
}

/** Hands a Ctrl-C on. The command ends by it, or not; we wait, unless the user insists. */
static struct prb_error *hand_on(struct prb_remote_talk *talk)
{
	unsigned count = prb_interrupt_count();

	if (count > PATIENCE)
		return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
	while (talk->handed < count) {
		prb_link_put(&talk->link, PRB_REMOTE_INTERRUPT, NULL, 0);
		++talk->handed;
	}
	return prb_link_send(&talk->link);
}

static bool is_answered(const struct prb_remote_talk *talk)
{
	return talk->done || (talk->out.marked && talk->err.marked);
}

/** Until the command has ended, or the answer has. Ctrl-C is held. */
static struct prb_error *follow(struct prb_remote_talk *talk)
{
	struct prb_link *link = &talk->link;
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	sigdelset(&mask, SIGINT);
	while (!is_answered(talk)) {
		feed_text(talk);
		PRB_TRY(hand_on(talk));

		struct pollfd waits[] = {
			{.fd = link->fd,
			 .events = (short)(POLLIN | (link->out.length ? POLLOUT : 0))},
			{.fd = link->out.length || !link->window ? -1 : talk->in,
			 .events = POLLIN}};
		int rc = ppoll(waits, 2, NULL, &mask);

		if (rc < 0 && errno != EINTR)
			return prb_error_os(errno, "cannot wait for %.200s", link->target);
		if (rc > 0 && waits[1].revents)
			PRB_TRY(feed_from_in(talk));
		PRB_TRY(prb_link_send(link));
		if (rc > 0 && (waits[0].revents & (POLLIN | POLLHUP | POLLERR)))
			PRB_TRY(prb_link_receive(link));
		PRB_TRY(take_all(talk));
	}
	return NULL;
}

static struct prb_error *begin(struct prb_remote_talk *talk, const struct prb_remote_job *job)
{
	talk->mark = job->mark;
	talk->in = job->in;
	talk->out.fd = job->out;
	talk->err.fd = job->err;
	PRB_TRY(prb_link_open(&talk->link, job->target, job->token_file));
	return ask(&talk->link, job);
}

struct prb_error *prb_remote_run(const struct prb_remote_job *job, struct prb_remote_end *ret)
{
	__attribute__((cleanup(talk_deinit))) struct prb_remote_talk talk = {.link.fd = -1};

	PRB_TRY(begin(&talk, job));
	prb_interrupt_catch(NULL);
	prb_interrupt_hold(true);

	struct prb_error *err = follow(&talk);
	prb_interrupt_hold(false);
	prb_interrupt_release();
	*ret = talk.end;
	return err;
}

struct prb_error *prb_remote_talk_begin(const struct prb_remote_job *job,
					struct prb_remote_talk **ret)
{
	struct prb_remote_talk *talk = calloc(1, sizeof(*talk));
	struct prb_error *err;

	if (!talk)
		return prb_error_nomem();
	talk->link.fd = -1;
	err = begin(talk, job);
	if (!err)
		err = prb_remote_talk_say(talk, "", 0);
	if (err)
		prb_remote_talk_end(talk);
	else
		*ret = talk;
	return err;
}

/** It did not answer, but ended. */
static struct prb_error *judge_end(const struct prb_remote_talk *talk)
{
	struct prb_error *err = prb_remote_judge(&talk->end);

	return err ? err
		   : prb_error_create(PRB_ERROR_CANCELLED, "the command at %.200s has ended",
				      talk->link.target);
}

/** Says one text, and waits for the answer to it. */
static struct prb_error *say(struct prb_remote_talk *talk, const char *text, size_t length)
{
	prb_str_truncate(&talk->text, 0);
	prb_str_append(&talk->text, text, length);
	prb_str_putc(&talk->text, '\0');
	if (talk->text.failed)
		return prb_error_nomem();
	talk->sent = 0;
	talk->handed = 0;
	talk->out.marked = talk->err.marked = false;
	prb_interrupt_hold(true);

	struct prb_error *err = follow(talk);
	prb_interrupt_hold(false);
	if (err)
		return err;
	return talk->done ? judge_end(talk) : NULL;
}

struct prb_error *prb_remote_talk_say(struct prb_remote_talk *talk, const char *text, size_t length)
{
	PRB_TRY(say(talk, text, length));
	/* A Ctrl-C may have come there after the answer; it is not meant for the next text. */
	while (talk->handed) {
		prb_interrupt_forget();
		PRB_TRY(say(talk, "", 0));
	}
	return NULL;
}

struct prb_error *prb_remote_talk_look(struct prb_remote_talk *talk)
{
	PRB_TRY(prb_link_receive(&talk->link));
	PRB_TRY(take_all(talk));
	return talk->done ? judge_end(talk) : NULL;
}

int prb_remote_talk_descriptor(const struct prb_remote_talk *talk)
{
	return talk->link.fd;
}

void prb_remote_talk_end(struct prb_remote_talk *talk)
{
	if (talk)
		talk_deinit(talk);
	free(talk);
}

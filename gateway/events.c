/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stacks as Server-Sent Events: the command is run again and again, and what it prints is an event.
 * Between two of them nothing runs. A client that reads slowly gets fewer events, not late ones.
 * Streams that ask for the same share what is read: see prb_event_give().
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "gateway/gateway_private.h"

static const double EVERY_SECONDS = 2;

struct prb_error *prb_answer_events(struct prb_request *r)
{
	const char *every = prb_param(r, "every");

	r->every = every ? atof(every) : EVERY_SECONDS;
	PRB_TRY(prb_stacks_words(r));
	prb_request_start(r);
	return NULL;
}

/** Each line of a text is a line of the event's data. */
static void put_data(struct prb_str *event, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		prb_str_puts(event, "data: ");
		prb_str_append(event, text, length);
		prb_str_putc(event, '\n');
		text += length + (text[length] == '\n');
	}
	prb_str_putc(event, '\n');
}

void prb_event_make(struct prb_request *r, struct prb_error *err)
{
	prb_auto_str struct prb_str text = {};

	struct prb_error *ended = err ? prb_served_check(&r->gateway->served, r->id) : NULL;

	if (ended) {
		prb_error_destroy(err);
		err = ended;
	}
	if (err) {
		/* The event has the text of an answer to a request. */
		prb_reply_error(r, err);
		r->over = true;
	}
	text = r->reply;
	r->reply = (struct prb_str){};
	prb_str_puts(&r->reply, r->over ? "event: failure\n" : "event: stacks\n");
	put_data(&r->reply, prb_str_text(&text));
	r->sent = 0;
}

/** True if the same command makes the events of another stream. */
static bool is_alike(const struct prb_request *r, const struct prb_request *other)
{
	if (other == r || !(other->every > 0) || other->words.list.count != r->words.list.count)
		return false;
	for (size_t i = 0; i < r->words.list.count; i++)
		if (strcmp(r->words.list.items[i], other->words.list.items[i]) != 0)
			return false;
	return true;
}

bool prb_event_is_made(const struct prb_request *r)
{
	struct prb_request *const *other;

	if (!(r->every > 0))
		return false;
	prb_vec_each (other, &r->gateway->waiting)
		if ((*other)->state == PRB_REQUEST_RUNS && is_alike(r, *other))
			return true;
	return false;
}

/** True if it has waited for half of its time at least: a fresh event is not too much for it. */
static bool takes(const struct prb_request *r, double now)
{
	return r->state == PRB_REQUEST_QUEUED ||
	       (r->state == PRB_REQUEST_RESTS && now >= r->since + r->every / 2);
}

struct prb_request *prb_event_give(const struct prb_request *r)
{
	struct prb_request **other;

	prb_vec_each (other, &r->gateway->waiting) {
		struct prb_request *one = *other;

		if (!one->suspended || !takes(one, r->gateway->now) || !is_alike(r, one))
			continue;
		prb_str_truncate(&one->reply, 0);
		prb_str_append(&one->reply, r->reply.data, r->reply.length);
		prb_str_truncate(&one->child.log, 0);
		prb_str_append(&one->child.log, prb_str_text(&r->child.log), r->child.log.length);
		one->sent = 0;
		one->since = r->since;
		return one;
	}
	return NULL;
}

bool prb_event_is_due(const struct prb_request *r)
{
	return r->gateway->now >= r->since + r->every;
}

ssize_t prb_event_read(void *context, uint64_t at, char *buffer, size_t max)
{
	struct prb_request *r = context;
	bool made = r->state == PRB_REQUEST_ANSWERED;
	size_t part = made ? PRB_MIN(r->reply.length - r->sent, max) : 0;

	(void)at;
	if (part) {
		memcpy(buffer, r->reply.data + r->sent, part);
		r->sent += part;
		return (ssize_t)part;
	}
	if (made && r->over)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (made) {
		prb_str_truncate(&r->reply, 0);
		r->sent = 0;
		r->state = PRB_REQUEST_RESTS;
	}
	return prb_request_suspend(r) ? 0 : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/reach/relay.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "command/output.h"

enum { MAX_HEAD = 1 << 16, CHUNK = 65536, MOST_TEXT = 256 << 20 };

/* Seconds for starting a relay, besides the timeouts of its hosts. */
static const double START = 5;

/** The answers of relays. */
struct relaying {
	struct prb_answers *answers; /* of all hosts */
	const struct prb_gather_options *options;
	size_t group; /* hosts of each relay */
};

/** Copies @p length bytes of a file, from @p offset on, to a file or to the end of a text. */
static struct prb_error *copy(int from, uint64_t offset, uint64_t length, int to,
			      struct prb_str *text)
{
	char chunk[CHUNK];

	while (length) {
		ssize_t got = pread(from, chunk, PRB_MIN(length, sizeof(chunk)), (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return prb_error_os(got ? errno : EIO, "cannot read an answer");
		offset += (uint64_t)got;
		length -= (uint64_t)got;
		if (text)
			prb_str_append(text, chunk, (size_t)got);
		for (ssize_t done = 0, written; !text && done < got; done += written) {
			written = write(to, chunk + done, (size_t)(got - done));
			if (written < 0 && errno != EINTR)
				return prb_error_os(errno, "cannot pass on an answer");
			written = PRB_MAX(written, 0);
		}
	}
	return text && text->failed ? prb_error_nomem() : NULL;
}

/** Prints what one of the answers of @p context is. */
static struct prb_error *print(void *context, struct prb_answer *answer)
{
	const struct prb_answers *answers = context;
	prb_auto_str struct prb_str line = {};
	struct prb_json json = {&line};

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "host", answer - answers->list.items);
	prb_json_integer(&json, "length", (int64_t)answer->spooled);
	prb_json_text(&json, "error", answer->error);
	prb_json_real(&json, "waited", answer->waited, 3);
	prb_json_close(&json, '}');
	prb_str_putc(&line, '\n');
	PRB_TRY(prb_output(&line));
	PRB_TRY(prb_output_flush());
	if (answer->spool < 0)
		return NULL;
	PRB_TRY(copy(answer->spool, 0, answer->spooled, STDOUT_FILENO, NULL));
	close(prb_steal_fd(&answer->spool));
	return NULL;
}

struct prb_error *prb_relay_serve(const struct prb_reach *reach, const struct prb_hosts *hosts,
				  char *const *words, double deadline_s)
{
	prb_auto_answers struct prb_answers answers = {};
	char *const *host;

	prb_vec_each (host, &hosts->list) {
		struct prb_answer *answer = prb_answers_add(&answers, *host);

		if (!answer)
			return prb_error_nomem();
		answer->spools = true;
		if (host != hosts->list.items) {
			PRB_TRY(prb_reach_ask(reach, answer, (const char *const *)words));
			continue;
		}
		answer->itself = true;
		PRB_TRY(prb_words_add(&answer->words, "probing"));
		PRB_TRY(prb_words_add_ours(&answer->words, (const char *const *)words));
	}
	return prb_gather(&answers, &(struct prb_gather_options){.deadline_s = deadline_s,
								 .handler = print,
								 .context = &answers});
}

/** Takes @p length bytes that the relay printed for a host. */
static struct prb_error *take_answer(const struct relaying *r, struct prb_answer *answer,
				     const struct prb_answer *relay, uint64_t at, uint64_t length)
{
	prb_words_deinit(&answer->words);
	answer->words = (struct prb_words){};
	if (answer->spools) {
		PRB_TRY(prb_answer_spool(answer));
		PRB_TRY(copy(relay->spool, at, length, answer->spool, NULL));
		answer->spooled = length;
	} else if (length <= MOST_TEXT) {
		PRB_TRY(copy(relay->spool, at, length, -1, &answer->out));
	} else if (!answer->error) {
		answer->error = strdup("the answer is too long");
		if (!answer->error)
			return prb_error_nomem();
	}
	return r->options->handler ? r->options->handler(r->options->context, answer) : NULL;
}

/** The line at @p at, as JSON; *next: behind it. NULL: there is none. */
static json_t *read_head(const struct prb_answer *relay, uint64_t at, uint64_t *next)
{
	prb_auto_free char *head = malloc(MAX_HEAD);
	ssize_t got = head ? pread(relay->spool, head, MAX_HEAD, (off_t)at) : -1;
	const char *end = got > 0 ? memchr(head, '\n', (size_t)got) : NULL;

	if (!end)
		return NULL;
	*next = at + (uint64_t)(end + 1 - head);
	return json_loadb(head, (size_t)(end - head), JSON_REJECT_DUPLICATES, NULL);
}

/** Takes what a relay has printed, as far as it is whole; the rest is asked again. */
static struct prb_error *take_relay(void *context, struct prb_answer *relay)
{
	const struct relaying *r = context;
	struct prb_error *err = NULL;
	size_t first = 0;

	while (strcmp(r->answers->list.items[first].host, relay->host) != 0)
		first++;
	for (uint64_t at = 0, from = 0; !err && relay->spool >= 0; at = from) {
		json_t *head = read_head(relay, at, &from);
		json_int_t place = json_integer_value(json_object_get(head, "host"));
		json_int_t length = json_integer_value(json_object_get(head, "length"));
		const char *why = json_string_value(json_object_get(head, "error"));
		bool good = json_is_integer(json_object_get(head, "host")) && place >= 0 &&
			    (size_t)place < r->group && length >= 0 &&
			    first + (size_t)place < r->answers->list.count &&
			    (uint64_t)length <= relay->spooled - PRB_MIN(from, relay->spooled);
		struct prb_answer *answer =
			good ? &r->answers->list.items[first + (size_t)place] : NULL;

		/* Each host once. */
		if (!answer || !answer->words.list.count) {
			json_decref(head);
			break;
		}
		if (why)
			err = prb_str_copy(why, &answer->error);
		answer->waited = json_number_value(json_object_get(head, "waited"));
		json_decref(head);
		if (!err)
			err = take_answer(r, answer, relay, from, (uint64_t)length);
		from += (uint64_t)length;
	}
	if (relay->spool >= 0)
		close(prb_steal_fd(&relay->spool));
	return err;
}

static struct prb_error *add_relay(const struct prb_reach *reach, const char *const *words,
				   const struct relaying *r, size_t first,
				   struct prb_answers *relays)
{
	struct prb_answer *relay = prb_answers_add(relays, r->answers->list.items[first].host);
	prb_auto_words struct prb_words line = {};
	prb_auto_str struct prb_str list = {};
	char **end;

	for (size_t i = first; i < first + r->group && i < r->answers->list.count; i++)
		prb_str_printf(&list, "%s%s", i > first ? "," : "", r->answers->list.items[i].host);
	if (!relay || list.failed)
		return prb_error_nomem();
	relay->spools = true;
	PRB_TRY(prb_words_add(&line, "cluster"));
	PRB_TRY(prb_words_add(&line, "relay"));
	PRB_TRY(prb_words_add(&line, "--hosts=%s", prb_str_text(&list)));
	PRB_TRY(prb_words_add(&line, "--timeout=%.0fms", r->options->deadline_s * 1000));
	/* The relay was brought itself. */
	if (reach->bring)
		PRB_TRY(prb_words_add(&line, "--bring=/proc/self/exe"));
	PRB_TRY(prb_words_add(&line, "--"));
	for (; *words; words++)
		PRB_TRY(prb_words_add(&line, "%s", *words));
	PRB_TRY(prb_words_end(&line, &end));
	return prb_reach_ask(reach, relay, (const char *const *)end);
}

struct prb_error *prb_relay_gather(const struct prb_reach *reach, const char *const *words,
				   struct prb_answers *answers,
				   const struct prb_gather_options *options)
{
	prb_auto_answers struct prb_answers relays = {};
	struct relaying relaying = {.answers = answers, .options = options, .group = 1};
	const struct prb_answer *answer;

	prb_vec_each (answer, &answers->list)
		if (prb_reach_is_served(answer->host))
			return prb_error_create(PRB_ERROR_USAGE,
						"'%.100s' is a served process, which asks no "
						"others: no --tree",
						answer->host);
	/* As many hosts for each relay as there are relays. */
	while (relaying.group * relaying.group < answers->list.count)
		relaying.group++;
	for (size_t first = 0; first < answers->list.count; first += relaying.group)
		PRB_TRY(add_relay(reach, words, &relaying, first, &relays));
	PRB_TRY(prb_gather(&relays,
			   &(struct prb_gather_options){.deadline_s = options->deadline_s + START,
							.handler = take_relay,
							.context = &relaying}));
	return prb_gather(answers, options);
}

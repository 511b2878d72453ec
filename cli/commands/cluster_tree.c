/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A tree of two levels for thousands of hosts: each relay asks some hosts, itself among them, and
 * prints a line for each of them. Hosts of a relay that fails are asked directly.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands/cluster.h"
#include "command/output.h"

/* Seconds that a relay has for starting, besides those of the hosts that it asks. */
static const double START = 5;

/** What the relays have answered for. */
struct relaying {
	struct prb_looks *looks;
	struct prb_answers *answers; /* of all hosts */
	size_t group;		     /* hosts of each relay */
};

/** Prints what a host has answered, as one line that begins with its name. */
static struct prb_error *print_line(void *context, struct prb_answer *answer)
{
	const char *text = answer->out.data ? answer->out.data : "";
	prb_auto_str struct prb_str line = {};

	(void)context;
	if (answer->error) {
		struct prb_json json = {&line};

		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "host", answer->host);
		prb_json_text(&json, "error", answer->error);
		prb_json_close(&json, '}');
	} else {
		/* One line, whatever it printed: nobody answers for another host. */
		prb_looks_name(&line, answer->host, text, strcspn(text, "\n"));
	}
	prb_str_putc(&line, '\n');
	prb_str_deinit(&answer->out);
	PRB_TRY(prb_output(&line));
	return prb_output_flush();
}

struct prb_error *prb_cluster_relay(struct prb_cluster *c)
{
	const char *job = c->cli->argument_count > 1 ? c->cli->arguments[1] : NULL;
	prb_auto_words struct prb_words words = {};
	prb_auto_answers struct prb_answers answers = {};
	char *const *host;
	char **list;

	PRB_TRY(prb_cluster_begin_looks(c, job, &words, &list));
	prb_vec_each (host, &c->hosts.list) {
		struct prb_answer *answer = prb_answers_add(&answers, *host);

		if (!answer)
			return prb_error_nomem();
		if (host != c->hosts.list.items) {
			PRB_TRY(prb_reach_ask(&c->reach, answer, (const char *const *)list));
			continue;
		}
		answer->itself = true;
		PRB_TRY(prb_words_add(&answer->words, "probing"));
		for (char **word = list; *word; word++)
			PRB_TRY(prb_words_add(&answer->words, "%s", *word));
	}
	return prb_gather(&answers,
			  &(struct prb_gather_options){.deadline_s = prb_cluster_span(c) +
								     prb_cluster_timeout(c),
						       .hurry = true,
						       .handler = print_line});
}

/** The answer of the relay's group whose host the line begins with; NULL if it is none of them. */
static struct prb_answer *find_host(const struct relaying *r, size_t first, const char *line,
				    size_t *length)
{
	for (size_t i = first; i < first + r->group && i < r->answers->list.count; i++) {
		struct prb_answer *answer = &r->answers->list.items[i];
		prb_auto_str struct prb_str name = {};

		prb_looks_name(&name, answer->host, "{", 1);
		*length = name.length;
		if (!strncmp(line, prb_str_text(&name), name.length))
			return answer;
	}
	return NULL;
}

/** Takes what one host has answered; its line without its name is what it printed. */
static struct prb_error *take_line(struct relaying *r, size_t first, char *line)
{
	static const char error[] = "\"error\":\"";
	struct prb_answer *answer;
	size_t length;

	answer = find_host(r, first, line, &length);
	if (!answer || !answer->words.list.count)
		return NULL;
	prb_words_deinit(&answer->words);
	answer->words = (struct prb_words){};
	line += length;
	if (!strncmp(line, error, strlen(error))) {
		prb_looks_lack(r->looks);
		line += strlen(error);
		answer->error = strndup(line, strcspn(line, "\""));
		return answer->error ? NULL : prb_error_nomem();
	}
	/* The bracket is in the place of the name's end. */
	*--line = '{';
	return prb_looks_add(r->looks, answer->host, line, strlen(line), &answer->error);
}

static struct prb_error *take_relay(void *context, struct prb_answer *relay)
{
	struct relaying *r = context;
	size_t first = 0;

	while (strcmp(r->answers->list.items[first].host, relay->host) != 0)
		first++;
	for (char *line = relay->out.data, *rest; line && *line; line = rest) {
		rest = strchr(line, '\n');
		if (!rest)
			break; /* cut off */
		*rest++ = '\0';
		PRB_TRY(take_line(r, first, line));
	}
	prb_str_deinit(&relay->out);
	return NULL;
}

static struct prb_error *add_relay(const struct prb_cluster *c, const char *job, size_t first,
				   size_t group, struct prb_answers *relays)
{
	const struct prb_hosts *hosts = &c->hosts;
	struct prb_answer *relay = prb_answers_add(relays, hosts->list.items[first]);
	prb_auto_words struct prb_words words = {};
	prb_auto_str struct prb_str list = {};
	char **end;

	for (size_t i = first; i < first + group && i < hosts->list.count; i++)
		prb_str_printf(&list, "%s%s", i > first ? "," : "", hosts->list.items[i]);
	if (!relay || list.failed)
		return prb_error_nomem();
	PRB_TRY(prb_cluster_words(c, "relay", NULL, &words));
	PRB_TRY(prb_words_add(&words, "--hosts=%s", prb_str_text(&list)));
	PRB_TRY(prb_words_add(&words, "--timeout=%.0fms", prb_cluster_timeout(c) * 1000));
	if (job)
		PRB_TRY(prb_words_add(&words, "%s", job));
	PRB_TRY(prb_words_end(&words, &end));
	return prb_reach_ask(&c->reach, relay, (const char *const *)end);
}

struct prb_error *prb_cluster_ask_relays(struct prb_cluster *c, const char *job,
					 struct prb_looks *looks, struct prb_answers *answers)
{
	prb_auto_answers struct prb_answers relays = {};
	struct relaying relaying = {.looks = looks, .answers = answers, .group = 1};
	size_t count = c->hosts.list.count;

	/* As many hosts for each relay as there are relays. */
	while (relaying.group * relaying.group < count)
		relaying.group++;
	for (size_t first = 0; first < count; first += relaying.group)
		PRB_TRY(add_relay(c, job, first, relaying.group, &relays));
	return prb_gather(&relays,
			  &(struct prb_gather_options){.deadline_s = prb_cluster_span(c) +
								     prb_cluster_timeout(c) + START,
						       .hurry = !c->settings->timeout,
						       .handler = take_relay,
						       .context = &relaying});
}

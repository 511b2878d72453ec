/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/watch/incident.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cluster/reach/gather.h"

enum { MOST_TEXT = 4000, MOST_LABEL = 200, MOST_NAMED = 1 << 16 };

static const char LOOK[] = "look";

/* Seconds for the child that judges, snapshots included. */
static const double PATIENCE = 300;

void prb_incident_ends_deinit(struct prb_incident_ends *ends)
{
	struct prb_incident_end *one;

	prb_vec_each (one, &ends->list)
		free(one->how);
	prb_vec_free(&ends->list);
}

void prb_incident_deinit(struct prb_incident *incident)
{
	free(incident->job);
	free(incident->verdict);
	free(incident->sentence);
	free(incident->evidence);
	free(incident->rests_on);
	free(incident->confidence);
	free(incident->wrong_if);
	free(incident->next);
	prb_vec_free(&incident->ranks.list);
	prb_incident_ends_deinit(&incident->ends);
	prb_str_deinit(&incident->text);
	*incident = (struct prb_incident){};
}

/** Runs "probing cluster ACTION JOB …", and takes the JSON that it prints. */
static struct prb_error *ask(const char *action, const char *job, const char *hosts,
			     const char *save, struct prb_str *text, json_t **ret)
{
	prb_auto_answers struct prb_answers answers = {};
	struct prb_answer *answer = prb_answers_add(&answers, NULL);

	if (!answer)
		return prb_error_nomem();
	answer->itself = true;
	PRB_TRY(prb_words_add(&answer->words, "probing"));
	PRB_TRY(prb_words_add(&answer->words, "cluster"));
	PRB_TRY(prb_words_add(&answer->words, "%s", action));
	if (strcmp(action, LOOK) != 0)
		PRB_TRY(prb_words_add(&answer->words, "--json"));
	if (save)
		PRB_TRY(prb_words_add(&answer->words, "--save=%s", save));
	if (hosts)
		PRB_TRY(prb_words_add(&answer->words, "--hosts=%s", hosts));
	/* Names of jobs are their user's choice. */
	PRB_TRY(prb_words_add(&answer->words, "--"));
	PRB_TRY(prb_words_add(&answer->words, "%s", job));
	PRB_TRY(prb_gather(&answers, &(struct prb_gather_options){.deadline_s = PATIENCE}));
	/* A job that hangs is an exit code. */
	*ret = json_loadb(answer->out.data ? answer->out.data : "", answer->out.length,
			  JSON_REJECT_DUPLICATES, NULL);
	*text = answer->out;
	answer->out = (struct prb_str){};
	if (json_is_object(*ret))
		return NULL;
	json_decref(*ret);
	return prb_error_create(PRB_ERROR_FAILED, "the job cannot be judged: %.500s",
				answer->error ? answer->error : "no answer");
}

static struct prb_error *copy(const json_t *object, const char *key, char **ret)
{
	const char *text = json_string_value(json_object_get(object, key));

	*ret = strndup(text ? text : "", MOST_TEXT);
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *take_ends(const json_t *ended, struct prb_incident_ends *ret)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)ended, i, one)
	{
		struct prb_incident_end *place = i < MOST_NAMED ? prb_vec_push(&ret->list) : NULL;

		if (!place)
			return i < MOST_NAMED ? prb_error_nomem() : NULL;
		*place = (struct prb_incident_end){
			.rank = (long)json_integer_value(json_object_get(one, "rank")),
			.known = json_is_true(json_object_get(one, "known")),
		};
		PRB_TRY(copy(one, "how", &place->how));
	}
	return NULL;
}

static struct prb_error *take(const json_t *answer, struct prb_incident *ret)
{
	const json_t *ranks = json_object_get(answer, "ranks"), *rank;
	size_t i;

	PRB_TRY(copy(answer, "job", &ret->job));
	PRB_TRY(copy(answer, "verdict", &ret->verdict));
	PRB_TRY(copy(answer, "sentence", &ret->sentence));
	PRB_TRY(copy(answer, "evidence", &ret->evidence));
	PRB_TRY(copy(answer, "rests_on", &ret->rests_on));
	PRB_TRY(copy(answer, "confidence", &ret->confidence));
	PRB_TRY(copy(answer, "wrong_if", &ret->wrong_if));
	PRB_TRY(copy(answer, "next", &ret->next));
	json_array_foreach((json_t *)ranks, i, rank)
	{
		long *place = i < MOST_NAMED ? prb_vec_push(&ret->ranks.list) : NULL;

		if (!place)
			return i < MOST_NAMED ? prb_error_nomem() : NULL;
		*place = (long)json_integer_value(rank);
	}
	return take_ends(json_object_get(answer, "ended"), &ret->ends);
}

struct prb_error *prb_incident_judge(const char *job, const char *hosts, const char *save,
				     struct prb_incident *ret)
{
	json_t *answer;
	struct prb_error *err;

	PRB_TRY(ask("hang", job, hosts, save, &ret->text, &answer));
	err = take(answer, ret);
	json_decref(answer);
	return err;
}

bool prb_incident_hangs(const struct prb_incident *incident, bool waits)
{
	return strcmp(incident->verdict, "moves") != 0 &&
	       (waits || strcmp(incident->verdict, "unknown") != 0);
}

struct prb_error *prb_incident_look(pid_t pid, const char *save, struct prb_str *ret)
{
	prb_auto_free char *job = prb_format("%d", (int)pid);
	json_t *answer;

	if (!job)
		return prb_error_nomem();
	PRB_TRY(ask(LOOK, job, NULL, save, ret, &answer));
	json_decref(answer);
	return NULL;
}

struct prb_error *prb_incident_find_slow(pid_t pid, char **sentence, long *rank)
{
	prb_auto_free char *job = prb_format("%d", (int)pid);
	prb_auto_str struct prb_str text = {};
	struct prb_error *err = NULL;
	json_t *answer;

	*sentence = NULL;
	*rank = -1;
	if (!job)
		return prb_error_nomem();
	PRB_TRY(ask("slow", job, NULL, NULL, &text, &answer));
	if (json_is_true(json_object_get(answer, "sure")) &&
	    json_is_integer(json_object_get(answer, "slow")) &&
	    json_is_string(json_object_get(answer, "sentence"))) {
		*rank = (long)json_integer_value(json_object_get(answer, "slow"));
		err = copy(answer, "sentence", sentence);
	}
	json_decref(answer);
	return err;
}

void prb_incident_put(const struct prb_incident *incident, const char *host, double waited,
		      const char *saved, struct prb_str *s)
{
	struct prb_json json = {s};
	const char *end = incident->text.length ? strrchr(incident->text.data, '}') : NULL;

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "event", "hung");
	prb_json_text(&json, "host", host);
	prb_json_real(&json, "time", (double)time(NULL), 0);
	prb_json_real(&json, "waited_s", waited, 1);
	prb_json_text(&json, "saved", saved);
	prb_json_text(&json, "job", incident->job);
	prb_json_text(&json, "text", incident->sentence);
	if (end) {
		prb_str_puts(s, ",\"hang\":");
		prb_str_append(s, incident->text.data, (size_t)(end + 1 - incident->text.data));
	}
	prb_json_close(&json, '}');
}

void prb_incident_put_label(struct prb_str *s, const char *text)
{
	prb_str_putc(s, '"');
	for (size_t i = 0; text[i] && i < MOST_LABEL; i++) {
		if (text[i] == '"' || text[i] == '\\')
			prb_str_putc(s, '\\');
		prb_str_putc(s, (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i]);
	}
	prb_str_putc(s, '"');
}

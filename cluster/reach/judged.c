/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/reach/judged.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/judge.h"

enum { MOST_TARGETS = 4096, MOST_FINDINGS = 32, MOST_LINES = 64, MOST_TEXT = 2000, MOST_ARGS = 64 };

void prb_judged_deinit(struct prb_judged_list *list)
{
	struct prb_judged *one;

	prb_vec_each (one, &list->list) {
		prb_findings_deinit(&one->findings);
		free(one->command);
		free(one->doing);
		free(one->unreadable);
	}
	prb_vec_free(&list->list);
}

/** Appends a text of the answer, which may be no text. */
static void put(struct prb_str *s, const json_t *value)
{
	size_t length = json_string_length(value);

	if (json_is_string(value))
		prb_text_escape_bytes(s, json_string_value(value),
				      length < MOST_TEXT ? length : MOST_TEXT);
}

static struct prb_error *copy(const json_t *value, char **ret)
{
	struct prb_str s = {};

	if (!json_is_string(value))
		return NULL;
	put(&s, value);
	*ret = s.length ? prb_str_take(&s) : strdup("");
	return *ret ? NULL : prb_error_nomem();
}

static pid_t number(const json_t *value)
{
	json_int_t pid = json_integer_value(value);

	return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

static const struct prb_rule *find_rule(const char *name)
{
	for (const struct prb_rule *const *rule = prb_rules; name && *rule; rule++)
		if (!strcmp((*rule)->name, name))
			return *rule;
	return NULL;
}

static enum prb_confidence confidence_of(const char *name)
{
	for (enum prb_confidence c = PRB_CONFIDENCE_MEDIUM; name && c <= PRB_CONFIDENCE_HIGH; c++)
		if (!strcmp(prb_confidence_name(c), name))
			return c;
	return PRB_CONFIDENCE_LOW;
}

static struct prb_error *add_lines(const json_t *lines, struct prb_finding *f)
{
	const json_t *item;
	struct prb_str *line;
	size_t i;

	json_array_foreach((json_t *)lines, i, item)
	{
		if (i == MOST_LINES)
			break;
		PRB_TRY(prb_finding_line(f, number(json_object_get(item, "tid")), &line));
		put(line, json_object_get(item, "text"));
	}
	return NULL;
}

static struct prb_error *add_finding(const json_t *item, struct prb_findings *findings)
{
	const json_t *name = json_object_get(item, "rule");
	const struct prb_rule *known = find_rule(json_string_value(name)),
			      *rule = known ? known : find_rule("unknown");
	json_int_t code = json_integer_value(json_object_get(item, "code"));
	struct prb_finding *f;

	if (!rule)
		return NULL;
	PRB_TRY(prb_finding_add(rule, findings, &f));
	/* A rule may have findings of another kind than its own. */
	if (known && code > PRB_FINDING_EXIT && code < PRB_FINDING_EXIT + PRB_FINDING_KINDS)
		f->kind = (enum prb_finding_kind)(code - PRB_FINDING_EXIT);
	f->confidence = confidence_of(json_string_value(json_object_get(item, "confidence")));
	f->proof = json_is_true(json_object_get(item, "proof"));
	/* Of another version of probing. */
	if (!known) {
		put(&f->sentence, name);
		prb_str_puts(&f->sentence, ": ");
	}
	put(&f->sentence, json_object_get(item, "sentence"));
	put(&f->rests_on, json_object_get(item, "rests_on"));
	put(&f->wrong_if, json_object_get(item, "wrong_if"));
	put(&f->next, json_object_get(item, "next"));
	return add_lines(json_object_get(item, "evidence"), f);
}

static struct prb_error *put_command(const json_t *target, char **ret)
{
	const json_t *arguments = json_object_get(target, "argv"), *argument;
	struct prb_str s = {};
	size_t i;

	if (json_is_string(json_object_get(target, "file")))
		return copy(json_object_get(target, "file"), ret);
	json_array_foreach((json_t *)arguments, i, argument)
	{
		if (i == MOST_ARGS || s.length > MOST_TEXT)
			break;
		prb_str_puts(&s, i ? " " : "");
		put(&s, argument);
	}
	*ret = s.length ? prb_str_take(&s) : strdup("");
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *add_target(const json_t *target, struct prb_judged_list *ret)
{
	const json_t *findings = json_object_get(target, "findings"), *item;
	struct prb_judged *one = prb_vec_push(&ret->list);
	size_t i;

	if (!one)
		return prb_error_nomem();
	*one = (struct prb_judged){.pid = number(json_object_get(target, "pid"))};
	PRB_TRY(put_command(target, &one->command));
	PRB_TRY(copy(json_object_get(target, "doing"), &one->doing));
	PRB_TRY(copy(json_object_get(target, "unreadable"), &one->unreadable));
	json_array_foreach((json_t *)findings, i, item)
	{
		if (i < MOST_FINDINGS)
			PRB_TRY(add_finding(item, &one->findings));
	}
	return NULL;
}

struct prb_error *prb_judged_read(const struct prb_str *answer, struct prb_judged_list *ret)
{
	json_t *all = json_loadb(answer->data ? answer->data : "", answer->length,
				 JSON_REJECT_DUPLICATES, NULL);
	const json_t *targets = json_object_get(all, "targets"), *target;
	struct prb_error *err = NULL;
	size_t i;

	if (!json_is_array(targets))
		err = prb_error_create(PRB_ERROR_BAD_DATA, "it does not answer with findings");
	json_array_foreach((json_t *)targets, i, target)
	{
		if (!err && i < MOST_TARGETS)
			err = add_target(target, ret);
	}
	json_decref(all);
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/words.h"

/* Some 30 years: longer is a slip, and harder to reckon with. */
static const double MAX_SECONDS = 1e9;

struct match {
	const struct prb_option *option;
	void *settings;
};

static bool find_letter(const struct prb_option_scopes *scopes, char letter, struct match *ret)
{
	for (const struct prb_option_scope *s = scopes->list; s->options; s++) {
		for (const struct prb_option *o = s->options; o->name; o++) {
			if (o->letter && o->letter == letter) {
				*ret = (struct match){o, s->settings};
				return true;
			}
		}
	}
	return false;
}

static bool find_name(const struct prb_option_scopes *scopes, const char *name, size_t length,
		      struct match *ret)
{
	for (const struct prb_option_scope *s = scopes->list; s->options; s++) {
		for (const struct prb_option *o = s->options; o->name; o++) {
			if (strlen(o->name) == length && !memcmp(o->name, name, length)) {
				*ret = (struct match){o, s->settings};
				return true;
			}
		}
	}
	return false;
}

static struct prb_error *unknown_option(const struct prb_option_scopes *scopes, const char *word,
					size_t length)
{
	struct prb_error *err =
		prb_error_create(PRB_ERROR_USAGE, "'%s' has no option '%.*s'", scopes->command,
				 (int)PRB_MIN(length, (size_t)100), word);
	char name[PRB_MAX_WORD + 1];

	if (length > 2 && length - 2 <= PRB_MAX_WORD) {
		memcpy(name, word + 2, length - 2);
		name[length - 2] = '\0';
		for (const struct prb_option_scope *s = scopes->list; s->options; s++)
			for (const struct prb_option *o = s->options; o->name; o++)
				if (prb_word_resembles(name, o->name))
					return prb_error_hint(err, "did you mean '--%s'?", o->name);
	}
	return prb_error_hint(err, "'%s --help' lists the options", scopes->command);
}

static struct prb_error *parse_number(const struct prb_option *option, const char *text, int *ret)
{
	char *end;

	errno = 0;
	long value = strtol(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value < 1 || value > INT_MAX)
		return prb_error_create(PRB_ERROR_USAGE,
					"option '--%s' needs a number above 0, not '%.100s'",
					option->name, text);
	*ret = (int)value;
	return NULL;
}

static struct prb_error *parse_seconds(const struct prb_option *option, const char *text,
				       double *ret)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
	size_t digits = strspn(text, "0123456789.");
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; digits && end == text + digits && i < PRB_ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].unit) || !(value > 0) || value > MAX_SECONDS)
			continue;
		*ret = value * units[i].seconds;
		return NULL;
	}
	return prb_error_create(PRB_ERROR_USAGE,
				"option '--%s' needs a duration like 5, 5s or 500ms, not '%.100s'",
				option->name, text);
}

static struct prb_error *store_text(const struct prb_option *option, const char *value,
				    struct prb_texts *texts)
{
	if (texts->count == PRB_MAX_TEXTS)
		return prb_error_create(PRB_ERROR_USAGE, "option '--%s' is given over %d times",
					option->name, PRB_MAX_TEXTS);
	texts->items[texts->count++] = value;
	return NULL;
}

/** Stores an option; @p value is NULL for an option without one. */
static struct prb_error *store(const struct match *match, const char *value)
{
	char *place = (char *)match->settings + match->option->place;

	switch (match->option->kind) {
	case PRB_OPTION_FLAG:
		*(bool *)place = true;
		break;
	case PRB_OPTION_COUNT:
		++*(unsigned *)place;
		break;
	case PRB_OPTION_TEXT:
		*(const char **)place = value;
		break;
	case PRB_OPTION_TEXTS:
		return store_text(match->option, value, (struct prb_texts *)place);
	case PRB_OPTION_NUMBER:
		return parse_number(match->option, value, (int *)place);
	case PRB_OPTION_SECONDS:
		return parse_seconds(match->option, value, (double *)place);
	}
	return NULL;
}

static struct prb_error *missing_value(const struct prb_option *option)
{
	return prb_error_create(PRB_ERROR_USAGE, "option '--%s' needs a value: %s", option->name,
				option->value);
}

bool prb_option_takes_word(const struct prb_option *option)
{
	return option->value && (!option->otherwise || strchr(option->otherwise, ':'));
}

/** True if the word after an option with a value is that value. */
static bool takes_word(const struct prb_option *option, const char *next)
{
	return next && prb_option_takes_word(option) && (!option->otherwise || strchr(next, ':'));
}

/** Parses "--name" or "--name=value"; *used: the word after it was its value. */
static struct prb_error *parse_long(const struct prb_option_scopes *scopes, const char *word,
				    const char *next, bool *used)
{
	size_t length = strcspn(word, "=");
	const char *value = word[length] ? word + length + 1 : NULL;
	struct match match;

	if (!find_name(scopes, word + 2, length - 2, &match))
		return unknown_option(scopes, word, length);
	if (!match.option->value && value)
		return prb_error_create(PRB_ERROR_USAGE, "option '--%s' takes no value",
					match.option->name);
	if (match.option->value && !value) {
		*used = takes_word(match.option, next);
		value = *used ? next : match.option->otherwise;
		if (!value)
			return missing_value(match.option);
	}
	return store(&match, value);
}

/** Parses "-abc", where the last letter may have its value attached or after it. */
static struct prb_error *parse_letters(const struct prb_option_scopes *scopes, const char *word,
				       const char *next, bool *used)
{
	for (const char *p = word + 1; *p; p++) {
		struct match match;

		if (!find_letter(scopes, *p, &match)) {
			char text[3] = {'-', *p, '\0'};

			return unknown_option(scopes, text, 2);
		}
		if (!prb_option_takes_word(match.option)) {
			PRB_TRY(store(&match, match.option->otherwise));
			continue;
		}
		if (p[1])
			return store(&match, p + 1);
		*used = true;
		return next ? store(&match, next) : missing_value(match.option);
	}
	return NULL;
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

struct prb_error *prb_options_parse(const struct prb_option_scopes *scopes, char **words,
				    size_t count, size_t *positional)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		const char *next = i + 1 < count ? words[i + 1] : NULL;
		bool used = false;

		if (!strcmp(words[i], "--")) {
			while (++i < count)
				words[found++] = words[i];
			break;
		}
		if (!is_option(words[i]))
			words[found++] = words[i];
		else if (words[i][1] == '-')
			PRB_TRY(parse_long(scopes, words[i], next, &used));
		else
			PRB_TRY(parse_letters(scopes, words[i], next, &used));
		i += used;
	}
	*positional = found;
	return NULL;
}

/** True if @p word is an option whose value is the word @p next. */
static bool takes_next(const struct prb_option_scopes *scopes, const char *word, const char *next)
{
	struct match match;

	if (word[1] == '-')
		return !strchr(word, '=') &&
		       find_name(scopes, word + 2, strlen(word + 2), &match) &&
		       match.option->value && takes_word(match.option, next);
	for (const char *p = word + 1; *p && find_letter(scopes, *p, &match); p++)
		if (prb_option_takes_word(match.option))
			return !p[1];
	return false;
}

size_t prb_options_skip(const struct prb_option_scopes *scopes, char **words, size_t count,
			size_t start)
{
	for (size_t i = start; i < count; i++) {
		if (!strcmp(words[i], "--"))
			return PRB_MIN(i + 1, count);
		if (!is_option(words[i]))
			return i;
		i += takes_next(scopes, words[i], i + 1 < count ? words[i + 1] : NULL);
	}
	return count;
}

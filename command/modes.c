/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/modes.h"

#include <string.h>

#include "base/cleanup.h"

bool prb_option_is_given(const struct prb_option *option, const void *settings)
{
	const char *place = (const char *)settings + option->place;

	switch (option->kind) {
	case PRB_OPTION_FLAG:
		return *(const bool *)place;
	case PRB_OPTION_COUNT:
		return *(const unsigned *)place;
	case PRB_OPTION_TEXT:
		return *(const char *const *)place;
	case PRB_OPTION_TEXTS:
		return ((const struct prb_texts *)place)->count;
	case PRB_OPTION_NUMBER:
		return *(const int *)place;
	case PRB_OPTION_SECONDS:
		return *(const double *)place > 0;
	}
	return false;
}

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += length)
		if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

static bool takes(const struct prb_mode *mode, const char *option)
{
	return mode->takes ? has_word(mode->takes, option)
			   : !mode->leaves || !has_word(mode->leaves, option);
}

static bool is_chosen(const struct prb_mode *mode, const struct prb_option *options,
		      const void *settings)
{
	for (const struct prb_option *o = options; o->name; o++)
		if (has_word(mode->by, o->name) && !prb_option_is_given(o, settings))
			return false;
	return true;
}

size_t prb_mode_find(const struct prb_mode *modes, const struct prb_option *options,
		     const void *settings)
{
	size_t i = 0;

	while (!is_chosen(&modes[i], options, settings))
		i++;
	return i;
}

/* "--torch, --last and a process" */
static void put_takers(struct prb_str *s, const struct prb_mode *modes, size_t count,
		       const char *option)
{
	const struct prb_mode *last = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!takes(&modes[i], option))
			continue;
		if (last)
			prb_str_printf(s, "%s%s", s->length ? ", " : "", last->name);
		last = &modes[i];
	}
	if (last)
		prb_str_printf(s, "%s%s", s->length ? " and " : "", last->name);
}

static struct prb_error *refuse(const struct prb_mode *modes, size_t count,
				const struct prb_mode *mode, const char *option)
{
	prb_auto_str struct prb_str takers = {};
	struct prb_error *err =
		prb_error_create(PRB_ERROR_USAGE, "--%s is not for %s", option, mode->name);

	if (mode->instead)
		return prb_error_hint(err, "%s", mode->instead);
	put_takers(&takers, modes, count, option);
	return takers.length ? prb_error_hint(err, "it is for %s", prb_str_text(&takers)) : err;
}

struct prb_error *prb_mode_check(const struct prb_mode *modes, size_t count, size_t chosen,
				 const struct prb_option *options, const void *settings)
{
	for (const struct prb_option *o = options; o->name; o++)
		if (prb_option_is_given(o, settings) && !takes(&modes[chosen], o->name))
			return refuse(modes, count, &modes[chosen], o->name);
	return NULL;
}

struct prb_error *prb_mode_check_each(const struct prb_mode *modes, size_t count,
				      const struct prb_option *options, const void *settings)
{
	for (size_t i = 0; i < count; i++)
		if (is_chosen(&modes[i], options, settings))
			PRB_TRY(prb_mode_check(&modes[i], 1, 0, options, settings));
	return NULL;
}

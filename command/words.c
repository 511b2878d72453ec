/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/words.h"

#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

void prb_words_deinit(struct prb_words *words)
{
	char **word;

	prb_vec_each (word, &words->list)
		free(*word);
	prb_vec_free(&words->list);
}

static struct prb_error *add(struct prb_words *words, char *text)
{
	char **word = text ? prb_vec_push(&words->list) : NULL;

	if (!word) {
		free(text);
		return prb_error_nomem();
	}
	*word = text;
	return NULL;
}

/** True if behind the words there are an option's name can only be a name. */
static bool options_ended(const struct prb_words *words)
{
	char *const *word;

	prb_vec_each (word, &words->list)
		if (!strcmp(*word, "--"))
			return true;
	return false;
}

struct prb_error *prb_words_add(struct prb_words *words, const char *format, ...)
{
	prb_auto_str struct prb_str text = {};
	va_list args;

	va_start(args, format);
	prb_str_vprintf(&text, format, args);
	va_end(args);
	if (text.failed)
		return prb_error_nomem();
	if (*format == '%' && *prb_str_text(&text) == '-' && !options_ended(words))
		return prb_error_create(PRB_ERROR_USAGE,
					"'%.200s' begins with a dash: it would be an option of "
					"the program that it is for, %.100s",
					prb_str_text(&text),
					words->list.count ? words->list.items[0] : "");
	return add(words, prb_str_take(&text));
}

struct prb_error *prb_words_add_ours(struct prb_words *words, const char *const *list)
{
	for (; *list; list++)
		PRB_TRY(add(words, strdup(*list)));
	return NULL;
}

/** The variable of the option as the type that its kind has. */
#define PLACE(type) (*(const type *)((const char *)settings + option->place))

bool prb_option_is_set(const struct prb_option *option, const void *settings)
{
	switch (option->kind) {
	case PRB_OPTION_FLAG:
		return PLACE(bool);
	case PRB_OPTION_COUNT:
		return PLACE(unsigned);
	case PRB_OPTION_TEXT:
		return PLACE(char *);
	case PRB_OPTION_TEXTS:
		return PLACE(struct prb_texts).count;
	case PRB_OPTION_NUMBER:
		return PLACE(int);
	case PRB_OPTION_SECONDS:
		return PLACE(double) > 0;
	}
	return false;
}

struct prb_error *prb_words_add_option(struct prb_words *words, const struct prb_option *option,
				       const void *settings)
{
	switch (option->kind) {
	case PRB_OPTION_FLAG:
		return prb_words_add(words, "--%s", option->name);
	case PRB_OPTION_COUNT:
		for (unsigned i = 0; i < PLACE(unsigned); i++)
			PRB_TRY(prb_words_add(words, "--%s", option->name));
		return NULL;
	case PRB_OPTION_TEXT:
		return prb_words_add(words, "--%s=%s", option->name, PLACE(char *));
	case PRB_OPTION_TEXTS:
		for (size_t i = 0; i < PLACE(struct prb_texts).count; i++)
			PRB_TRY(prb_words_add(words, "--%s=%s", option->name,
					      PLACE(struct prb_texts).items[i]));
		return NULL;
	case PRB_OPTION_NUMBER:
		return prb_words_add(words, "--%s=%d", option->name, PLACE(int));
	case PRB_OPTION_SECONDS:
		return prb_words_add(words, "--%s=%.17gs", option->name, PLACE(double));
	}
	return NULL;
}

struct prb_error *prb_words_add_options(struct prb_words *words, const struct prb_option *options,
					const void *settings)
{
	for (const struct prb_option *o = options; o && o->name; o++)
		if (prb_option_is_set(o, settings))
			PRB_TRY(prb_words_add_option(words, o, settings));
	return NULL;
}

struct prb_error *prb_words_end(struct prb_words *words, char ***ret)
{
	/* The vector zeroes what it appends. */
	if (!prb_vec_push(&words->list))
		return prb_error_nomem();
	words->list.count--;
	*ret = words->list.items;
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/words.h"

#include <stdarg.h>

#include "base/cleanup.h"
#include "base/str.h"

void prb_words_deinit(struct prb_words *words)
{
	char **word;

	prb_vec_each (word, &words->list)
		free(*word);
	prb_vec_free(&words->list);
}

struct prb_error *prb_words_add(struct prb_words *words, const char *format, ...)
{
	struct prb_str text = {};
	char **word = prb_vec_push(&words->list);
	va_list args;

	if (!word)
		return prb_error_nomem();
	va_start(args, format);
	prb_str_vprintf(&text, format, args);
	va_end(args);
	*word = prb_str_take(&text);
	return *word ? NULL : prb_error_nomem();
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

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/choices.h"

#include <stdbool.h>
#include <string.h>

/** The next word, from @p *at on; false if there is none. */
static bool next(const char **at, const char **word, size_t *length)
{
	*word = *at;
	*length = strcspn(*at, " ");
	*at += *length + ((*at)[*length] == ' ');
	return **word;
}

struct prb_error *prb_choices_check(const char *name, const char *choices, const char *value)
{
	const char *at = choices, *word;
	size_t length;

	while (next(&at, &word, &length))
		if (length == strlen(value) && !strncmp(word, value, length))
			return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "'%s' is one of: %s; not '%.50s'", name, choices,
				value);
}

void prb_choices_put(struct prb_json *json, const char *choices)
{
	const char *at = choices, *word;
	size_t length;

	prb_json_open(json, "enum", '[');
	while (next(&at, &word, &length))
		prb_json_bytes(json, NULL, word, length);
	prb_json_close(json, ']');
}

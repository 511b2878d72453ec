/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The candidates for the word in front of the cursor, until readline takes them. */
#include "command/prompt/prompt.h"

#include <stdlib.h>
#include <stdio.h>

#include <readline/readline.h>

#include "base/vec.h"

static PRB_VEC(char *) candidates;
static size_t next_candidate;

void prb_prompt_offer(char *text)
{
	char **place = text ? prb_vec_push(&candidates) : NULL;

	if (place)
		*place = text;
	else
		free(text);
}

bool prb_prompt_has_offers(void)
{
	return candidates.count;
}

static char *generate(const char *word, int state)
{
	(void)word;
	if (!state)
		next_candidate = 0;
	return next_candidate < candidates.count ? candidates.items[next_candidate++] : NULL;
}

char **prb_prompt_matches(const char *word)
{
	/* Names of files mean nothing here. */
	rl_attempted_completion_over = 1;

	/* readline takes over the texts. */
	char **matches = rl_completion_matches(word, generate);
	prb_vec_free(&candidates);
	return matches;
}

void prb_prompt_complete_by(char **(*complete)(const char *word, int start, int end),
			    const char *breaks)
{
	rl_attempted_completion_function = complete;
	rl_completer_word_break_characters = breaks;
	rl_basic_word_break_characters = breaks;
	rl_completer_quote_characters = "";
}

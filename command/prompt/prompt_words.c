/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion at a prompt whose lines begin with a command; and such a prompt for a target that is
 * elsewhere. */
#include "command/prompt/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "command/interrupt.h"

#include <readline/readline.h>

static void (*offer)(const char *line, const char *word, bool first);

static char **complete(const char *word, int start, int end)
{
	(void)end;
	rl_completion_append_character = '\0';
	offer(rl_line_buffer, word, (int)strspn(rl_line_buffer, " ") >= start);
	return prb_prompt_matches(word);
}

void prb_prompt_words_begin(void (*offers)(const char *line, const char *word, bool first))
{
	static const char breaks[] = " \t\n!\"#$%&'()*+,-/:;<=>?@\\^`{|}~";

	offer = offers;
	prb_prompt_complete_by(complete, breaks);
}

static void offer_nothing(const char *line, const char *word, bool first)
{
	(void)line, (void)word, (void)first;
}

struct prb_error *prb_prompt_debug(const struct prb_prompt_runner *runner)
{
	prb_prompt_begin("debug_history", runner->watched);
	prb_prompt_words_begin(offer_nothing);
	for (;;) {
		prb_auto_free char *line = NULL;
		enum prb_prompt_read got;
		struct prb_error *err;

		prb_interrupt_forget();
		got = prb_prompt_read("(probing) ", &line);
		if (prb_prompt_is_lost())
			return runner->look(runner->context);
		if (got == PRB_PROMPT_END)
			return NULL;
		if (got == PRB_PROMPT_GIVEN_UP)
			continue;
		if (*line)
			prb_prompt_history_add(line);
		/* The empty text asks for nothing (remote/remote.h). */
		err = runner->run(runner->context, *line ? line : " ", *line ? strlen(line) : 1);
		/* By 'quit'. */
		if (prb_error_catch(&err, PRB_ERROR_CANCELLED))
			return NULL;
		PRB_TRY(err);
	}
}

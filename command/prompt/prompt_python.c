/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion at the Python prompt: by the agent. */
#include "command/prompt/prompt.h"

#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "control/client.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"

/** How long a program may keep the user waiting for names. */
enum { START_MS = 1000, TOTAL_MS = 2000, MAX_BYTES = 1 << 20 };
static const double SECONDS = 3;
static const char INDENTATION[] = "    ";

static struct prb_agent *source;

static struct prb_error *ask(const char *line, size_t length)
{
	struct prb_wire_eval request = {.start_ms = START_MS, .total_ms = TOTAL_MS};
	uint8_t fixed[PRB_WIRE_EVAL_SIZE];

	prb_wire_put_eval(fixed, &request);
	return prb_agent_request(source, SECONDS, PRB_WIRE_COMPLETE, fixed, sizeof(fixed), line,
				 length);
}

/** Puts the lines that answer into @p ret. */
static struct prb_error *receive(struct prb_str *ret)
{
	const uint16_t request = prb_agent_last_request(source);
	double by = prb_agent_deadline(SECONDS);
	struct prb_wire_frame frame;

	for (;;) {
		PRB_TRY(prb_agent_receive(source, prb_agent_left(by), &frame));
		if (!prb_agent_left(by))
			return prb_error_create(PRB_ERROR_TIMEOUT, "%s", "");
		if (frame.request != request)
			continue;
		if (frame.type == PRB_WIRE_DONE || frame.type == PRB_WIRE_ERROR)
			return NULL;
		if (frame.type == PRB_WIRE_CANDIDATES && ret->length + frame.length < MAX_BYTES)
			prb_str_append(ret, frame.payload, frame.length);
	}
}

/** Notes a candidate that begins like the word and is what it looks like. */
static void offer(const char *text, const char *word)
{
	prb_auto_str struct prb_str escaped = {};

	prb_text_escape(&escaped, text);
	if (!escaped.failed && !strcmp(prb_str_text(&escaped), text) &&
	    !strncmp(text, word, strlen(word)))
		prb_prompt_offer(strdup(text));
}

static char **complete(const char *word, int start, int end)
{
	prb_auto_str struct prb_str lines = {};
	char *rest = NULL;

	(void)start;
	rl_completion_append_character = '\0';

	struct prb_error *err = ask(rl_line_buffer, (size_t)end);
	if (!err)
		err = receive(&lines);
	/* A lost agent is reported when the line is run. */
	if (!err && lines.length)
		for (char *line = strtok_r(lines.data, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			offer(line, word);
	prb_error_destroy(err);
	return prb_prompt_matches(word);
}

/** Tab: names, or at the beginning of a line indentation. */
static int on_tab(int count, int key)
{
	if ((int)strspn(rl_line_buffer, " \t") >= rl_point)
		return rl_insert_text(INDENTATION), 0;
	/* The second one in a row shows what there is. */
	return rl_last_func == on_tab ? rl_possible_completions(count, key)
				      : rl_complete(count, key);
}

void prb_prompt_python_begin(struct prb_agent *agent)
{
	static const char breaks[] = " \t\n!\"#$%&'()*+,-/:;<=>?@[\\]^`{|}~";

	source = agent;
	prb_prompt_complete_by(complete, breaks);
	rl_bind_key('\t', on_tab);
}

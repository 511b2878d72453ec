/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the SQL and Python prompts, the only users of readline. */
#ifndef PRB_COMMAND_PROMPT_PROMPT_H
#define PRB_COMMAND_PROMPT_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct prb_agent;

/** The prompt's own commands, with what they do; ends with a NULL name. */
struct prb_prompt_command {
	const char *name, *argument, *does;
};
extern const struct prb_prompt_command prb_prompt_commands[];

/** Runs the statements typed at the SQL prompt. */
struct prb_prompt_runner {
	/**
	 * Runs statements, or one of the prompt's own commands. It prints their errors itself; an
	 * error that it returns ends the prompt.
	 */
	struct prb_error *(*run)(void *context, const char *text, size_t length);
	/** Called when there is something to read at `watched`; its error ends the prompt. */
	struct prb_error *(*look)(void *context);
	void *context;
	int watched; /**< or -1 */
};

/** Reads statements from the terminal and has them run until the user ends it. */
struct prb_error *prb_prompt_sql(const struct prb_prompt_runner *runner) PRB_MUST_CHECK;

/** The same for `probing debug`: each line is run as it is, the empty one as a space. */
struct prb_error *prb_prompt_debug(const struct prb_prompt_runner *runner) PRB_MUST_CHECK;

/** Offers a candidate for the word that Tab completes; takes over @p text, which may be NULL. */
void prb_prompt_offer(char *text);
/** True if something was offered since the last word was completed. */
bool prb_prompt_has_offers(void);
/** The candidates of @p word for readline: all that were offered, and no file names. */
char **prb_prompt_matches(const char *word);

/** Lets Tab complete words between @p breaks (static) by a function for readline. */
void prb_prompt_complete_by(char **(*complete)(const char *word, int start, int end),
			    const char *breaks);

/** Lets Tab complete keywords, tables, columns and the prompt's commands. */
void prb_prompt_complete_begin(void);
/** The earlier lines of the statement, which may name tables. NULL: none. */
void prb_prompt_complete_after(const char *text);

/**
 * Makes the terminal ready for prb_prompt_read() and reads the history of earlier prompts, from the
 * file @p history in the folder of all histories; without a home there is none. @p watched: a
 * descriptor at whose end, or when it has something to read, reading ends; or -1.
 */
void prb_prompt_begin(const char *history, int watched);

/** @p look is called when there is something to read at what is watched: true ends the reading. */
void prb_prompt_watch(bool (*look)(void *context), void *context);

enum prb_prompt_read {
	PRB_PROMPT_LINE,
	PRB_PROMPT_GIVEN_UP, /**< Ctrl-C: so is what was typed before */
	PRB_PROMPT_END,	     /**< Ctrl-D, or the end of what is watched */
};

/** Reads a line; @p ret is for the caller to free, and NULL at the end. */
enum prb_prompt_read prb_prompt_read(const char *prompt, char **ret);

/** True if reading ended because of what is watched. */
bool prb_prompt_is_lost(void);

/** Notes what was entered, and writes it to the history file at once. */
void prb_prompt_history_begin(const char *name);
void prb_prompt_history_add(const char *text);

/** Lets Tab complete what @p offers gives to prb_prompt_offer() for a word; @p first: of the line.
 */
void prb_prompt_words_begin(void (*offers)(const char *line, const char *word, bool first));

/** Lets Tab ask the agent for names, and indent at the beginning of a line. */
void prb_prompt_python_begin(struct prb_agent *agent);

/** True if @p sql ends a statement: its last character that counts is a semicolon. */
bool prb_prompt_is_complete(const char *sql);

#endif
